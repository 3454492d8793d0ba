/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http_client.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/qty.h"
#include "net/http_client_internal.h"

#define CONNECT_TIMEOUT_MS 5000L
#define BODY_MAX ((size_t)64 * 1024 * 1024)
#define STREAM_TICK_MS 250

struct transfer {
    struct http_client *client;
    struct http_reply *reply;
    http_stream_fn *fn; /* NULL = collect the body */
    void *user;
    int fn_result;
    bool too_large;
};

static void init_curl(void)
{
    curl_global_init(CURL_GLOBAL_DEFAULT);
}

int http_client_create(const char *url, const char *token, struct http_client **ret_client,
                       struct err *err)
{
    _cleanup_(http_client_destroyp) struct http_client *c = calloc(1, sizeof(*c));
    const char *remedy = "write http://HOST:PORT, https://HOST or unix:/path/to/socket";
    static pthread_once_t once = PTHREAD_ONCE_INIT; /* libcurl's own is not thread-safe */
    char *host;

    if (c == NULL)
        abort();
    pthread_once(&once, init_curl);
    if (strncmp(url, "unix:/", 6) == 0) {
        c->unix_path = strdup(strchr(url, '/'));
        c->base = strdup("http://localhost");
    } else if (strncasecmp(url, "http://", 7) == 0 || strncasecmp(url, "https://", 8) == 0) {
        c->base = strdup(url);
    } else {
        return err_set(err, -EINVAL, ERR_INVALID, "url", remedy,
                       "server address '%.200s' is not a URL", url);
    }
    c->shown = strdup(url);
    c->token = token ? strdup(token) : NULL;
    c->curl = curl_easy_init();
    if (c->curl == NULL || c->base == NULL || c->shown == NULL || (token && !c->token))
        abort();
    host = strstr(c->base, "//") + 2;
    for (size_t n = strlen(host); n > 0 && host[n - 1] == '/'; n--)
        host[n - 1] = '\0';
    if (strpbrk(host, " \t\r\n?#") || *host == '\0')
        return err_set(err, -EINVAL, ERR_INVALID, "url", remedy,
                       "server address '%.200s' is not a URL", url);
    if (token && strpbrk(token, "\r\n"))
        return err_set(err, -EINVAL, ERR_INVALID, "token", "use the token as it was printed",
                       "token has a line break");
    *ret_client = steal_ptr(&c);
    return 0;
}

void http_client_destroy(struct http_client *c)
{
    if (c == NULL)
        return;
    curl_slist_free_all(c->extra);
    curl_easy_cleanup(c->curl);
    free(c->base);
    free(c->shown);
    free(c->unix_path);
    if (c->token)
        explicit_bzero(c->token, strlen(c->token));
    free(c->token);
    free(c);
}

void http_client_header(struct http_client *c, const char *name, const char *value)
{
    _cleanup_strbuf_ struct strbuf line = STRBUF_INIT;
    struct curl_slist *grown;

    strbuf_addf(&line, "%s: %s", name, value);
    for (size_t i = 0; i < line.len; i++)
        if ((unsigned char)line.data[i] < ' ')
            line.data[i] = ' ';
    grown = curl_slist_append(c->extra, strbuf_str(&line));
    if (grown == NULL)
        abort();
    c->extra = grown;
}

struct curl_slist *http_client_take_headers(struct http_client *c, const char *accept,
                                            bool has_body)
{
    http_client_header(c, "Accept", accept);
    if (has_body)
        http_client_header(c, "Content-Type", "application/json");
    if (c->token) {
        _cleanup_strbuf_ struct strbuf value = STRBUF_INIT;

        strbuf_addf(&value, "Bearer %s", c->token);
        http_client_header(c, "Authorization", strbuf_str(&value));
    }
    return steal_ptr(&c->extra);
}

static int errno_of(CURLcode code, CURL *curl)
{
    long os = 0;

    curl_easy_getinfo(curl, CURLINFO_OS_ERRNO, &os);
    switch (code) {
    case CURLE_OPERATION_TIMEDOUT:
        return -ETIMEDOUT;
    case CURLE_COULDNT_RESOLVE_HOST:
        return -EHOSTUNREACH;
    case CURLE_COULDNT_CONNECT:
        return os > 0 ? -(int)os : -ECONNREFUSED;
    case CURLE_URL_MALFORMAT:
        return -EINVAL;
    default:
        return -EIO;
    }
}

int http_client_failed(struct http_client *c, CURL *curl, CURLcode code, struct err *err)
{
    int errnum = errno_of(code, curl);
    const char *remedy = "check the address and that the server runs (allot server)";

    if (errnum == -EINVAL)
        remedy = "write http://HOST:PORT, https://HOST or unix:/path/to/socket";
    else if (errnum == -EIO)
        remedy = "the connection broke; look at the server's log, then ask again";
    return err_set(err, errnum, ERR_UNAVAILABLE, NULL, remedy, "no answer from '%.200s': %s",
                   c->shown, curl_easy_strerror(code));
}

/* The value of header LINE if it is called NAME, without blanks around; its length in RET_LEN. */
static const char *header_value(const char *line, size_t n, const char *name, size_t *ret_len)
{
    size_t at = strlen(name);

    if (n <= at || strncasecmp(line, name, at) != 0 || line[at] != ':')
        return NULL;
    at++;
    while (at < n && (line[at] == ' ' || line[at] == '\t'))
        at++;
    while (n > at && (unsigned char)line[n - 1] <= ' ')
        n--;
    *ret_len = n - at;
    return line + at;
}

static size_t on_header(char *data, size_t size, size_t count, void *user)
{
    struct transfer *t = user;
    size_t n = size * count, len;
    const char *value;
    char number[24];

    value = header_value(data, n, "ETag", &len);
    if (value && len < sizeof(t->reply->etag)) {
        memcpy(t->reply->etag, value, len);
        t->reply->etag[len] = '\0';
    }
    value = header_value(data, n, "X-Log-Offset", &len);
    if (value && len < sizeof(number)) {
        memcpy(number, value, len);
        number[len] = '\0';
        if (qty_parse_int(number, &t->reply->offset, NULL) < 0)
            t->reply->offset = 0;
    }
    return n;
}

static size_t on_body(char *data, size_t size, size_t count, void *user)
{
    struct transfer *t = user;
    size_t n = size * count;
    long status = 0;

    if (t->fn)
        curl_easy_getinfo(t->client->curl, CURLINFO_RESPONSE_CODE, &status);
    if (t->fn && status == 200) {
        t->fn_result = n > 0 ? t->fn(t->user, data, n) : 0;
        return t->fn_result == 0 ? n : 0;
    }
    if (t->reply->body.len + n > BODY_MAX) {
        t->too_large = true;
        return 0;
    }
    strbuf_add(&t->reply->body, data, n);
    return n;
}

void http_client_common(struct http_client *c, CURL *curl)
{
    curl_easy_reset(curl); /* the connection stays */
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_TIMEOUT_MS);
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(curl, CURLOPT_USERAGENT, "allot");
    if (c->unix_path)
        curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, c->unix_path);
    /* A token must not travel through a proxy that the environment happens to name. */
    curl_easy_setopt(curl, CURLOPT_NOPROXY, "*");
}

static void set_transfer(struct transfer *t, const char *method, const char *path, const void *body,
                         size_t len, const struct curl_slist *headers)
{
    CURL *curl = t->client->curl;
    _cleanup_strbuf_ struct strbuf url = STRBUF_INIT;

    strbuf_addf(&url, "%s%s", t->client->base, path);
    http_client_common(t->client, curl);
    curl_easy_setopt(curl, CURLOPT_URL, strbuf_str(&url));
    curl_easy_setopt(curl, CURLOPT_PATH_AS_IS, 1L);
    curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, method);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(curl, CURLOPT_HEADERDATA, t);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, t);
    if (body == NULL && strcmp(method, "GET") != 0 && strcmp(method, "DELETE") != 0)
        body = "";
    if (body) {
        curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)len);
        curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body);
    }
}

static void reply_begin(struct http_reply *reply)
{
    reply->status = 0;
    reply->etag[0] = '\0';
    reply->offset = 0;
    if (reply->body.data)
        strbuf_truncate(&reply->body, 0);
}

static int reply_status(struct http_client *c)
{
    long status = 0;

    curl_easy_getinfo(c->curl, CURLINFO_RESPONSE_CODE, &status);
    return (int)status;
}

static int reply_too_large(struct http_client *c, struct err *err)
{
    return err_set(err, -EFBIG, ERR_TOO_LARGE, NULL, "ask for less at once (limit=)",
                   "answer of '%.200s' has more than %zu bytes", c->shown, BODY_MAX);
}

int http_client_call(struct http_client *c, const char *method, const char *path, const void *body,
                     size_t len, struct http_reply *ret_reply, struct err *err)
{
    struct curl_slist *headers = http_client_take_headers(c, "application/json", body != NULL);
    struct transfer t = {.client = c, .reply = ret_reply};
    CURLcode code;

    /* No "Expect": it saves a round trip, and the server reads a refused body to its end. */
    headers = curl_slist_append(headers, "Expect:");
    reply_begin(ret_reply);
    set_transfer(&t, method, path, body, len, headers);
    code = curl_easy_perform(c->curl);
    curl_slist_free_all(headers);
    if (t.too_large)
        return reply_too_large(c, err);
    if (code != CURLE_OK)
        return http_client_failed(c, c->curl, code, err);
    ret_reply->status = reply_status(c);
    return 0;
}

/* Drives one transfer and calls fn with nothing four times a second while it is quiet. */
static CURLcode stream_run(struct transfer *t, CURLM *multi)
{
    int running = 1, in_queue;
    CURLMsg *msg;

    while (running > 0) {
        int ready = 0;

        if (curl_multi_perform(multi, &running) != CURLM_OK)
            return CURLE_RECV_ERROR;
        if (running == 0)
            break;
        if (curl_multi_poll(multi, NULL, 0, STREAM_TICK_MS, &ready) != CURLM_OK)
            return CURLE_RECV_ERROR;
        if (ready == 0) {
            t->fn_result = t->fn(t->user, NULL, 0);
            if (t->fn_result != 0)
                return CURLE_OK;
        }
    }
    while ((msg = curl_multi_info_read(multi, &in_queue)))
        if (msg->msg == CURLMSG_DONE)
            return msg->data.result;
    return CURLE_RECV_ERROR;
}

int http_client_stream(struct http_client *c, const char *path, const char *last_event_id,
                       http_stream_fn *fn, void *user, struct http_reply *ret_reply,
                       struct err *err)
{
    struct transfer t = {.client = c, .reply = ret_reply, .fn = fn, .user = user};
    struct curl_slist *headers;
    CURLM *multi = curl_multi_init();
    CURLcode code;

    if (multi == NULL)
        abort();
    if (last_event_id)
        http_client_header(c, "Last-Event-ID", last_event_id);
    headers = http_client_take_headers(c, "text/event-stream, text/plain", false);
    reply_begin(ret_reply);
    set_transfer(&t, "GET", path, NULL, 0, headers);
    curl_multi_add_handle(multi, c->curl);
    code = stream_run(&t, multi);
    ret_reply->status = reply_status(c);
    curl_multi_remove_handle(multi, c->curl);
    curl_multi_cleanup(multi);
    curl_slist_free_all(headers);
    if (t.fn_result != 0)
        return t.fn_result;
    if (t.too_large)
        return reply_too_large(c, err);
    return code == CURLE_OK ? 0 : http_client_failed(c, c->curl, code, err);
}

void http_reply_done(struct http_reply *r)
{
    strbuf_done(&r->body);
    r->status = 0;
    r->etag[0] = '\0';
}

void http_escape(const char *text, struct strbuf *out)
{
    for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
        if ((*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') || (*p >= '0' && *p <= '9') ||
            strchr("-._~", *p))
            strbuf_addc(out, (char)*p);
        else
            strbuf_addf(out, "%%%02X", *p);
    }
}
