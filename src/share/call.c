/* SPDX-License-Identifier: Apache-2.0 */
#include "share/call.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "share/place.h"

#define PATIENCE_SECONDS 60 /* how long an agent that is there may take to answer */
#define LOOK_SECONDS 1      /* after so long without an answer the time is looked at */
#define HUNG_UP_MS 20       /* before it is called again */

static int connect_agent(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const struct timeval look = {.tv_sec = LOOK_SECONDS};
    const char *path = share_place_socket();

    size_t length = strlen(path);

    if (length >= sizeof address.sun_path)
        return -ENAMETOOLONG;
    memcpy(address.sun_path, path, length + 1);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &look, sizeof look);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &look, sizeof look);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    int r = -errno;
    close(fd);
    return r;
}

static time_t seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec;
}

/* Waits for the answer until END; signals of the program come in between as they like. */
static int receive_welcome(int fd, time_t end, struct share_welcome *welcome, int fds[2])
{
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(2 * sizeof(int))];
    } control;
    struct iovec part = {.iov_base = welcome, .iov_len = sizeof *welcome};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof control};
    ssize_t n;

    do
        n = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
    while (n < 0 && (errno == EINTR || errno == EAGAIN) && seconds() < end);
    if (n == 0)
        return -ECONNRESET;
    if (n != (ssize_t)sizeof *welcome)
        return n < 0 ? -errno : -EPROTO;
    if (welcome->message == SHARE_REFUSAL)
        return welcome->error < 0 ? welcome->error : -EPROTO;
    const struct cmsghdr *c = CMSG_FIRSTHDR(&message);
    if (!c || c->cmsg_type != SCM_RIGHTS || c->cmsg_len != CMSG_LEN(2 * sizeof(int)))
        return -EPROTO;
    memcpy(fds, CMSG_DATA(c), 2 * sizeof(int));
    return 0;
}

static int call_agent(uint32_t message, time_t end, struct share_welcome *ret_welcome,
                      int ret_fds[2])
{
    struct share_hello hello = {.message = message, .version = SHARE_VERSION};
    int fd = connect_agent();
    int r = fd;

    if (fd < 0)
        return fd;
    if (send(fd, &hello, sizeof hello, MSG_NOSIGNAL) != (ssize_t)sizeof hello)
        r = -errno;
    else
        r = receive_welcome(fd, end, ret_welcome, ret_fds);
    if (r == 0)
        return fd;
    close(fd);
    return r;
}

/* What a node under load does to us, and what the next call may not meet any more: an agent that
 * has not come to us yet, that had to hang up, or a signal of the program. */
static bool passes(int r)
{
    return r == -EAGAIN || r == -EINTR || r == -ECONNRESET || r == -EPIPE;
}

int share_call(uint32_t message, struct share_welcome *ret_welcome, int ret_fds[2])
{
    const struct timespec moment = {.tv_nsec = HUNG_UP_MS * 1000000L};
    time_t end = seconds() + PATIENCE_SECONDS;
    int r = call_agent(message, end, ret_welcome, ret_fds);

    while (passes(r) && seconds() < end) {
        nanosleep(&moment, NULL);
        r = call_agent(message, end, ret_welcome, ret_fds);
    }
    return passes(r) ? -ETIMEDOUT : r;
}
