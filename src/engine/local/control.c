/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/local/control.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int control_send(int fd, const struct strbuf *message, int pass_fd)
{
    struct iovec iov = {.iov_base = message->data, .iov_len = message->len};
    union {
        char buf[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control;
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};

    if (message->len > CONTROL_MESSAGE_MAX)
        return -EMSGSIZE;
    if (pass_fd >= 0) {
        struct cmsghdr *c;

        memset(&control, 0, sizeof(control));
        msg.msg_control = control.buf;
        msg.msg_controllen = sizeof(control.buf);
        c = CMSG_FIRSTHDR(&msg);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(c), &pass_fd, sizeof(int));
    }
    for (;;) {
        if (sendmsg(fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
            return 0;
        if (errno != EINTR)
            return -errno;
    }
}

static void take_ancillary(struct msghdr *msg, int *ret_fd, pid_t *ret_pid)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
        if (c->cmsg_level != SOL_SOCKET)
            continue;
        if (c->cmsg_type == SCM_RIGHTS) {
            size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

            for (size_t i = 0; i < count; i++) {
                int got;

                memcpy(&got, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
                if (ret_fd && *ret_fd < 0)
                    *ret_fd = got;
                else
                    close(got);
            }
        } else if (c->cmsg_type == SCM_CREDENTIALS && ret_pid) {
            struct ucred cred;

            memcpy(&cred, CMSG_DATA(c), sizeof(cred));
            *ret_pid = cred.pid;
        }
    }
}

ssize_t control_recv(int fd, char *data, int *ret_fd, pid_t *ret_pid)
{
    struct iovec iov = {.iov_base = data, .iov_len = CONTROL_MESSAGE_MAX};
    union {
        char buf[CMSG_SPACE(4 * sizeof(int)) + CMSG_SPACE(sizeof(struct ucred))];
        struct cmsghdr align;
    } control;
    struct msghdr msg = {.msg_iov = &iov,
                         .msg_iovlen = 1,
                         .msg_control = control.buf,
                         .msg_controllen = sizeof(control.buf)};
    ssize_t n;

    if (ret_fd)
        *ret_fd = -1;
    if (ret_pid)
        *ret_pid = 0;
    /* A peer that went without having read everything resets the connection. That is said once,
     * and before what it had sent. */
    do {
        n = recvmsg(fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    } while (n < 0 && (errno == EINTR || errno == ECONNRESET));
    if (n < 0)
        return -errno;
    take_ancillary(&msg, ret_fd, ret_pid);
    return n;
}
