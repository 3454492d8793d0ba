/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/local/supervise/syscall_filter.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"

#if defined(__x86_64__)
#define NATIVE_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define NATIVE_ARCH AUDIT_ARCH_AARCH64
#else
#error "the system call filter does not know this architecture"
#endif

#define X32_BIT 0x40000000U

#define NAMESPACE_FLAGS                                                                           \
    (CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | \
     CLONE_NEWNET | CLONE_NEWTIME)

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
/* Low half of an argument; the machines above are little-endian. */
#define LOAD_ARG(n) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args) + (n)*8)
#define FAIL(e) BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (e))
#define ALLOW BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
#define REFUSE(name, e) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_##name, 0, 1), FAIL(e)
/* The next COUNT instructions are for this call only. */
#define UNLESS(name, count) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_##name, 0, (count))

static const struct sock_filter program[] = {
    LOAD(arch),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, NATIVE_ARCH, 1, 0),
    FAIL(ENOSYS),
    LOAD(nr),
#ifdef __x86_64__
    BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, X32_BIT, 0, 1),
    FAIL(ENOSYS),
#endif
    /* Namespaces of its own. */
    UNLESS(clone, 4),
    LOAD_ARG(0),
    BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, (unsigned)NAMESPACE_FLAGS & ~0xffU, 0, 1),
    FAIL(EPERM),
    ALLOW,
    UNLESS(unshare, 4),
    LOAD_ARG(0),
    BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, (unsigned)NAMESPACE_FLAGS, 0, 1),
    FAIL(EPERM),
    ALLOW,
    /* Typing into the terminal of someone else. */
    UNLESS(ioctl, 4),
    LOAD_ARG(1),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, TIOCSTI, 0, 1),
    FAIL(EPERM),
    ALLOW,
    REFUSE(clone3, ENOSYS), /* its flags are out of a filter's reach; libc falls back to clone */
    REFUSE(setns, EPERM),
    /* Mounts. */
    REFUSE(mount, EPERM),
    REFUSE(umount2, EPERM),
    REFUSE(pivot_root, EPERM),
    REFUSE(chroot, EPERM),
    REFUSE(open_tree, EPERM),
    REFUSE(move_mount, EPERM),
    REFUSE(fsopen, EPERM),
    REFUSE(fsconfig, EPERM),
    REFUSE(fsmount, EPERM),
    REFUSE(fspick, EPERM),
    REFUSE(mount_setattr, EPERM),
    REFUSE(open_by_handle_at, EPERM),
    /* The machine. */
    REFUSE(kexec_load, EPERM),
    REFUSE(kexec_file_load, EPERM),
    REFUSE(init_module, EPERM),
    REFUSE(finit_module, EPERM),
    REFUSE(delete_module, EPERM),
    REFUSE(reboot, EPERM),
    REFUSE(swapon, EPERM),
    REFUSE(swapoff, EPERM),
    REFUSE(acct, EPERM),
    REFUSE(quotactl, EPERM),
    REFUSE(settimeofday, EPERM),
    REFUSE(clock_settime, EPERM),
    REFUSE(adjtimex, EPERM),
    REFUSE(clock_adjtime, EPERM),
    REFUSE(syslog, EPERM),
    REFUSE(vhangup, EPERM),
    REFUSE(nfsservctl, EPERM),
    REFUSE(lookup_dcookie, EPERM),
    REFUSE(fanotify_init, EPERM),
#ifdef __x86_64__
    REFUSE(iopl, EPERM),
    REFUSE(ioperm, EPERM),
    REFUSE(modify_ldt, EPERM),
    REFUSE(uselib, EPERM),
    REFUSE(ustat, EPERM),
    REFUSE(sysfs, EPERM),
    REFUSE(create_module, EPERM),
    REFUSE(get_kernel_syms, EPERM),
    REFUSE(query_module, EPERM),
    REFUSE(_sysctl, EPERM),
#endif
    /* Surface that training and notebooks do without. */
    REFUSE(bpf, EPERM),
    REFUSE(perf_event_open, EPERM),
    REFUSE(userfaultfd, EPERM),
    REFUSE(add_key, EPERM),
    REFUSE(request_key, EPERM),
    REFUSE(keyctl, EPERM),
    REFUSE(kcmp, EPERM),
    REFUSE(io_uring_setup, ENOSYS),
    REFUSE(io_uring_enter, ENOSYS),
    REFUSE(io_uring_register, ENOSYS),
    ALLOW,
};

int syscall_filter_install(void)
{
    struct sock_fprog fprog = {.len = (unsigned short)ARRAY_LEN(program),
                               .filter = (struct sock_filter *)program};

    if (syscall(__NR_seccomp, SECCOMP_SET_MODE_FILTER, 0, &fprog) < 0)
        return -errno;
    return 0;
}
