/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Raw connections: libcurl connects, then the request is written and the head of the answer read
 * by hand, because what follows a 101 belongs to the caller to the last byte.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/qty.h"
#include "net/http_client_internal.h"

#define HEAD_MAX 16384
#define BODY_MAX ((size_t)1024 * 1024)
#define ANSWER_TIMEOUT_MS 30000

static int broke(struct http_client *c, int errnum, struct err *err)
{
    return err_set(err, errnum, ERR_UNAVAILABLE, NULL, "look at the server's log, then ask again",
                   "no answer from '%.200s': %s", c->shown, strerror(-errnum));
}

DEFINE_CLEANUP(CURL *, curl_easy_cleanup, curl_cleanupp)

/* Connects and gives a blocking descriptor of our own. The handle is of this call only: while it
 * lives it holds the connection open, whatever the caller closes. */
static int connect_raw(struct http_client *c, int *ret_fd, struct err *err)
{
    _cleanup_(curl_cleanupp) CURL *curl = curl_easy_init();
    curl_socket_t sock = CURL_SOCKET_BAD;
    CURLcode code;
    int fd, flags;

    if (strncasecmp(c->base, "https://", 8) == 0)
        return err_set(err, -EOPNOTSUPP, ERR_UNSUPPORTED, NULL,
                       "use the server's plain HTTP address, for example through an SSH tunnel",
                       "a raw connection to '%.200s' is not possible over TLS", c->shown);
    if (curl == NULL)
        abort();
    http_client_common(c, curl);
    curl_easy_setopt(curl, CURLOPT_URL, c->base);
    curl_easy_setopt(curl, CURLOPT_CONNECT_ONLY, 1L);
    code = curl_easy_perform(curl);
    if (code == CURLE_OK)
        code = curl_easy_getinfo(curl, CURLINFO_ACTIVESOCKET, &sock);
    if (code != CURLE_OK || sock == CURL_SOCKET_BAD)
        return http_client_failed(c, curl, code, err);
    fd = fcntl(sock, F_DUPFD_CLOEXEC, 0);
    flags = fd < 0 ? -1 : fcntl(fd, F_GETFL);
    if (flags < 0 || fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) < 0) {
        int errnum = -errno;

        if (fd >= 0)
            close(fd);
        return broke(c, errnum, err);
    }
    *ret_fd = fd;
    return 0;
}

static int send_request(struct http_client *c, int fd, const char *path, const void *body,
                        size_t len)
{
    struct curl_slist *headers = http_client_take_headers(c, "application/json", true);
    _cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
    const char *host = strstr(c->base, "//") + 2;

    strbuf_addf(&text, "POST %s HTTP/1.1\r\nHost: %.*s\r\n", path, (int)strcspn(host, "/"), host);
    strbuf_addf(&text, "Connection: Upgrade\r\nUpgrade: allot-exec\r\nContent-Length: %zu\r\n",
                len);
    for (const struct curl_slist *h = headers; h; h = h->next)
        strbuf_addf(&text, "%s\r\n", h->data);
    curl_slist_free_all(headers);
    strbuf_adds(&text, "\r\n");
    if (len > 0)
        strbuf_add(&text, body, len);
    return io_write_all(fd, text.data, text.len);
}

static int wait_readable(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    int n;

    do
        n = poll(&p, 1, ANSWER_TIMEOUT_MS);
    while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : n == 0 ? -ETIMEDOUT : 0;
}

/* Reads up to and including the empty line, and not a byte more. */
static int read_head(int fd, struct strbuf *head)
{
    while (head->len < HEAD_MAX) {
        char peeked[1024];
        size_t take;
        ssize_t n;
        int r = wait_readable(fd);

        if (r < 0)
            return r;
        n = recv(fd, peeked, sizeof(peeked), MSG_PEEK);
        if (n <= 0)
            return n < 0 ? -errno : -ECONNRESET;
        for (take = 0; take < (size_t)n;) {
            strbuf_addc(head, peeked[take++]);
            if (head->len >= 4 && memcmp(head->data + head->len - 4, "\r\n\r\n", 4) == 0)
                break;
        }
        if (recv(fd, peeked, take, 0) != (ssize_t)take)
            return -EIO;
        if (head->len >= 4 && memcmp(head->data + head->len - 4, "\r\n\r\n", 4) == 0)
            return 0;
    }
    return -EMSGSIZE;
}

static int64_t head_length(const char *head)
{
    const char *line = strcasestr(head, "\r\nContent-Length:");
    char digits[20] = "";
    int64_t length;

    if (line == NULL)
        return 0;
    line += strlen("\r\nContent-Length:");
    line += strspn(line, " \t");
    memcpy(digits, line, strnlen(line, sizeof(digits) - 1));
    digits[strspn(digits, "0123456789")] = '\0';
    return qty_parse_int(digits, &length, NULL) < 0 ? 0 : length;
}

static int read_body(int fd, int64_t length, struct strbuf *body)
{
    char part[4096];

    if ((uint64_t)length > BODY_MAX)
        return -EFBIG;
    while (body->len < (size_t)length) {
        size_t want = (size_t)length - body->len;
        ssize_t n;
        int r = wait_readable(fd);

        if (r < 0)
            return r;
        n = recv(fd, part, want < sizeof(part) ? want : sizeof(part), 0);
        if (n <= 0)
            return n < 0 ? -errno : -ECONNRESET;
        strbuf_add(body, part, (size_t)n);
    }
    return 0;
}

static int converse(struct http_client *c, int fd, const char *path, const void *body, size_t len,
                    struct http_reply *reply)
{
    _cleanup_strbuf_ struct strbuf head = STRBUF_INIT;
    int r = send_request(c, fd, path, body, len);

    if (r == 0)
        r = read_head(fd, &head);
    if (r < 0)
        return r;
    if (head.len < 12 || strncmp(head.data, "HTTP/1.", 7) != 0)
        return -EPROTO;
    reply->status = 0;
    for (int i = 9; i < 12; i++)
        if (head.data[i] >= '0' && head.data[i] <= '9')
            reply->status = reply->status * 10 + (head.data[i] - '0');
    if (reply->status == 101)
        return 0;
    return read_body(fd, head_length(head.data), &reply->body);
}

int http_client_upgrade(struct http_client *c, const char *path, const void *body, size_t len,
                        int *ret_fd, struct http_reply *ret_reply, struct err *err)
{
    _cleanup_close_ int fd = -1;
    int r;

    ret_reply->status = 0;
    ret_reply->etag[0] = '\0';
    if (ret_reply->body.data)
        strbuf_truncate(&ret_reply->body, 0);
    r = connect_raw(c, &fd, err);
    if (r < 0)
        return r;
    r = converse(c, fd, path, body, len, ret_reply);
    if (r < 0)
        return broke(c, r, err);
    if (ret_reply->status == 101)
        *ret_fd = steal_fd(&fd);
    return 0;
}
