/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The system calls that a task may not make.
 *
 * A deny list on top of the namespaces: calls that reach for the machine (modules, kexec, clock,
 * swap), that make new attack surface without need (bpf, perf_event_open, userfaultfd, io_uring,
 * keyrings) or that build namespaces and mounts of the task's own. They fail with EPERM, or with
 * ENOSYS where programs know how to do without (clone3, io_uring). Foreign ABIs (32-bit, x32)
 * are closed, because the numbers of the list would mean other calls there.
 *
 * ptrace stays allowed: it cannot leave the task's pid namespace, and debuggers are useful.
 *
 * The filter is a constant array of classic BPF, so that nothing has to be compiled or linked
 * when a task starts. It is kept across exec and inherited by children.
 */
#ifndef ALLOT_ENGINE_LOCAL_SUPERVISE_SYSCALL_FILTER_H
#define ALLOT_ENGINE_LOCAL_SUPERVISE_SYSCALL_FILTER_H

/* Binds the calling thread for good. Needs no_new_privs. 0 or negative errno. */
int syscall_filter_install(void);

#endif
