/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/local/supervise/kernels.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "engine/local/control.h"
#include "engine/local/record.h"

#define SERVERS_MAX 8
#define FILE_MAX 16384
#define ANSWER_MAX ((size_t)256 * 1024)
#define PATH_BYTES 4096

/* ---- texts ---------------------------------------------------------------------------------- */

/* What follows KEY (with its quotes) and a colon in TEXT; NULL: it is not there. */
static const char *value_after(const char *text, const char *key)
{
    const char *at = strstr(text, key);

    if (at == NULL)
        return NULL;
    at += strlen(key);
    at += strspn(at, " \t\r\n");
    if (*at != ':')
        return NULL;
    at++;
    return at + strspn(at, " \t\r\n");
}

/* The string at VALUE if it is one of at most KERNELS_TEXT_MAX - 1 visible characters. */
static bool take_string(const char *value, char *to)
{
    size_t n = 0;

    if (value == NULL || *value++ != '"')
        return false;
    for (; value[n] != '"'; n++)
        if (value[n] <= ' ' || value[n] > '~' || value[n] == '\\' || n + 1 >= KERNELS_TEXT_MAX)
            return false;
    memcpy(to, value, n);
    to[n] = '\0';
    return true;
}

bool kernels_find_server(const char *text, struct kernels_server *ret_server)
{
    const char *port = value_after(text, "\"port\""), *secure = value_after(text, "\"secure\"");
    struct kernels_server s = {0};
    char sock[KERNELS_TEXT_MAX];
    struct in_addr address;
    long number = port ? strtol(port, NULL, 10) : 0;

    if (number < 1 || number > UINT16_MAX || (secure && strncmp(secure, "false", 5) != 0) ||
        (take_string(value_after(text, "\"sock\""), sock) && sock[0] != '\0') ||
        !take_string(value_after(text, "\"token\""), s.token) || s.token[0] == '\0' ||
        !take_string(value_after(text, "\"base_url\""), s.base) || s.base[0] != '/')
        return false;
    if (!take_string(value_after(text, "\"hostname\""), s.host) ||
        inet_pton(AF_INET, s.host, &address) != 1)
        snprintf(s.host, sizeof(s.host), "127.0.0.1");
    s.port = (uint16_t)number;
    *ret_server = s;
    return true;
}

/* FNV-1a */
static uint64_t hash_of(const char *text)
{
    uint64_t h = UINT64_C(14695981039346656037);

    for (; *text; text++)
        h = (h ^ (unsigned char)*text) * UINT64_C(1099511628211);
    return h;
}

bool kernels_add_answer(const char *answer, struct kernels *k)
{
    const char *body = strstr(answer, "\r\n\r\n"), *value;
    char text[KERNELS_TEXT_MAX];

    if (body == NULL ||
        (strncmp(answer, "HTTP/1.0 200", 12) != 0 && strncmp(answer, "HTTP/1.1 200", 12) != 0))
        return false;
    body += strspn(body, " \t\r\n");
    if (*body != '[')
        return false;
    for (const char *at = body; (value = value_after(at, "\"execution_state\"")); at = value)
        k->busy |= take_string(value, text) && strcmp(text, "busy") == 0;
    /* A sum: servers and kernels come in any order. */
    for (const char *at = body; (value = value_after(at, "\"last_activity\"")); at = value)
        k->mark += take_string(value, text) ? hash_of(text) : 0;
    return true;
}

/* ---- asking --------------------------------------------------------------------------------- */

/* "GET": the whole answer, to be freed; NULL: none, or too much. */
static char *fetch(const struct kernels_server *s)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(s->port)};
    _cleanup_close_ int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    _cleanup_free_ char *data = malloc(ANSWER_MAX + 1);
    char request[4 * KERNELS_TEXT_MAX];
    size_t len = 0;
    ssize_t n;

    /* Whoever goes by the time of the last request should not be kept awake by this one. */
    int size = snprintf(request, sizeof(request),
                        "GET %s%sapi/kernels?no_track_activity=1 HTTP/1.0\r\n"
                        "Host: localhost:%u\r\nAuthorization: token %s\r\n\r\n",
                        s->base, s->base[strlen(s->base) - 1] == '/' ? "" : "/", s->port, s->token);

    if (fd < 0 || data == NULL || inet_pton(AF_INET, s->host, &to.sin_addr) != 1 ||
        connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0 ||
        send(fd, request, (size_t)size, MSG_NOSIGNAL) != size)
        return NULL;
    while ((n = recv(fd, data + len, ANSWER_MAX + 1 - len, 0)) > 0)
        len += (size_t)n;
    if (n < 0 || len > ANSWER_MAX)
        return NULL;
    data[len] = '\0';
    return steal_ptr(&data);
}

static const char *env_get(char *const *env, const char *key)
{
    size_t n = strlen(key);

    for (; *env; env++)
        if (strncmp(*env, key, n) == 0 && (*env)[n] == '=' && (*env)[n + 1] != '\0')
            return *env + n + 1;
    return NULL;
}

/* As Jupyter looks for it. */
static void runtime_folder(char *const *env, char path[PATH_BYTES])
{
    const struct {
        const char *key, *below;
    } places[] = {{"JUPYTER_RUNTIME_DIR", ""},
                  {"JUPYTER_DATA_DIR", "/runtime"},
                  {"XDG_DATA_HOME", "/jupyter/runtime"},
                  {"HOME", "/.local/share/jupyter/runtime"}};

    path[0] = '\0';
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        const char *at = env_get(env, places[i].key);

        if (at == NULL)
            continue;
        snprintf(path, PATH_BYTES, "%s%s", at, places[i].below);
        return;
    }
}

bool kernels_exist(char *const *env)
{
    char path[PATH_BYTES];

    runtime_folder(env, path);
    return access(path, X_OK) == 0;
}

/* "jpserver-PID.json" of a server that lives; a file may be left of one that was killed. */
static bool is_server_file(const char *name)
{
    int pid, end = 0;

    return sscanf(name, "jpserver-%d.json%n", &pid, &end) == 1 && end > 0 && name[end] == '\0' &&
           pid > 0 && kill(pid, 0) == 0;
}

static void ask_server(int folder, const char *name, struct kernels *k)
{
    _cleanup_free_ char *text = NULL, *answer = NULL;
    struct kernels_server s;

    if (io_read_file(folder, name, FILE_MAX, &text, NULL) == 0 && kernels_find_server(text, &s))
        answer = fetch(&s);
    if (answer == NULL || !kernels_add_answer(answer, k))
        k->known = false;
}

static void ask_servers(DIR *folder, struct kernels *k)
{
    const struct dirent *entry;
    int servers = 0;

    k->known = true;
    while (servers < SERVERS_MAX && (entry = readdir(folder)))
        if (is_server_file(entry->d_name)) {
            ask_server(dirfd(folder), entry->d_name, k);
            servers++;
        }
    k->known &= servers > 0;
}

static void tell(const struct kernels *k, int control)
{
    _cleanup_strbuf_ struct strbuf b = STRBUF_INIT;

    record_add(&b, "op", "kernels");
    record_add_i64(&b, "busy", k->busy);
    if (k->known)
        record_add_i64(&b, "mark", (int64_t)(k->mark & INT64_MAX));
    (void)control_send(control, &b, -1);
}

void kernels_report(char *const *env, int control)
{
    struct kernels k = {0};
    char path[PATH_BYTES];
    sigset_t none;
    DIR *folder;

    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)alarm(KERNELS_PATIENCE_S);
    runtime_folder(env, path);
    folder = opendir(path);
    if (folder) {
        ask_servers(folder, &k);
        closedir(folder);
        tell(&k, control);
    }
    _exit(0);
}
