/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/local/image.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <json-c/json.h>
#include <stdio.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/map.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "engine/local/tool.h"
#include "model/json.h"

#define OCI "oci:"
#define DOCKER "docker://"
#define REFERENCE_MAX 1024
#define DIGEST_PREFIX "sha256:"
#define DIGEST_HEX 64
#define JSON_MAX ((size_t)4 * 1024 * 1024)
#define REF_NAME "org.opencontainers.image.ref.name"
#define POLICY_FILE "/etc/containers/policy.json"

DEFINE_CLEANUP(struct json_object *, json_object_put, json_putp)

int image_check(const char *reference, struct err *err)
{
    size_t n = strlen(reference);

    if (n == 0 || n > REFERENCE_MAX)
        return err_set(err, -EINVAL, ERR_OUT_OF_RANGE, "image", "name an image",
                       "image reference is empty or too long");
    for (size_t i = 0; i < n; i++)
        if (reference[i] <= ' ' || reference[i] == 0x7f)
            return err_set(err, -EINVAL, ERR_INVALID, "image", "leave blanks out",
                           "image reference '%s' has blanks or control characters", reference);
    if (text_starts_with(reference, OCI) && reference[strlen(OCI)] == '/' &&
        strchr(reference + strlen(OCI), ':'))
        return 0;
    if (text_starts_with(reference, DOCKER))
        return 0;
    /* Other transports of skopeo read files with the server's rights. A bare name has no colon
     * before its first slash unless that is a port. */
    if (reference[0] != '-' && reference[0] != '/' && strstr(reference, "://") == NULL &&
        !text_starts_with(reference, OCI) && !text_starts_with(reference, "dir:") &&
        !text_starts_with(reference, "docker-") && !text_starts_with(reference, "containers-") &&
        !text_starts_with(reference, "oci-") && !text_starts_with(reference, "ostree:"))
        return 0;
    return err_set(err, -EINVAL, ERR_INVALID, "image",
                   "use docker://HOST/NAME:TAG or oci:/FOLDER:TAG",
                   "image reference '%s' is of no kind that is known", reference);
}

static bool digest_ok(const char *digest)
{
    return text_starts_with(digest, DIGEST_PREFIX) &&
           strlen(digest) == strlen(DIGEST_PREFIX) + DIGEST_HEX &&
           strspn(digest + strlen(DIGEST_PREFIX), "0123456789abcdef") == DIGEST_HEX;
}

static int parse_file(int dirfd, const char *path, struct json_object **ret_json, struct err *err)
{
    _cleanup_free_ char *text = NULL;
    size_t len;
    int r = io_read_file(dirfd, path, JSON_MAX, &text, &len);

    if (r < 0)
        return err_set(err, r, ERR_INVALID, "image", NULL, "'%s' cannot be read: %s", path,
                       strerror(-r));
    return model_json_parse(text, len, ret_json, err);
}

/* The digest behind TAG in a layout's index. */
static const char *find_tag(struct json_object *index, const char *tag)
{
    struct json_object *manifests = NULL, *m, *annotations, *name, *digest;

    if (!json_object_object_get_ex(index, "manifests", &manifests) ||
        !json_object_is_type(manifests, json_type_array))
        return NULL;
    for (size_t i = 0; i < json_object_array_length(manifests); i++) {
        m = json_object_array_get_idx(manifests, i);
        if (json_object_object_get_ex(m, "annotations", &annotations) &&
            json_object_object_get_ex(annotations, REF_NAME, &name) &&
            strcmp(json_object_get_string(name), tag) == 0 &&
            json_object_object_get_ex(m, "digest", &digest))
            return json_object_get_string(digest);
    }
    return NULL;
}

/* Opens the layout's index with the rights of UID on the way there. */
static int open_index(const char *folder, uint32_t uid)
{
    struct stat st;
    int dir, fd, e;

    if (geteuid() == 0) {
        setfsgid(uid);
        setfsuid(uid);
    }
    dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    fd = dir < 0 ? -1 : openat(dir, "index.json", O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    e = errno;
    if (geteuid() == 0) {
        setfsuid(0);
        setfsgid(0);
    }
    if (dir >= 0)
        close(dir);
    if (fd < 0)
        return -e;
    /* A pipe would keep its reader for ever. */
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
        close(fd);
        return -EINVAL;
    }
    return fd;
}

static int resolve_layout(const char *reference, uint32_t uid, struct arena *arena,
                          const char **ret_digest, struct err *err)
{
    const char *rest = reference + strlen(OCI);
    const char *colon = strrchr(rest, ':');
    const char *folder = arena_strndup(arena, rest, (size_t)(colon - rest)), *digest;
    _cleanup_(json_putp) struct json_object *index = NULL;
    _cleanup_close_ int fd = open_index(folder, uid);
    int r;

    if (fd < 0)
        return err_set(err, fd, ERR_NOT_FOUND, "image",
                       "name an OCI layout that everybody may read",
                       "image layout '%s' cannot be read: %s", folder, strerror(-fd));
    r = parse_file(AT_FDCWD, arena_printf(arena, "/proc/self/fd/%d", fd), &index, err);
    if (r < 0)
        return r;
    digest = find_tag(index, colon + 1);
    if (digest == NULL || !digest_ok(digest))
        return err_set(err, -ENOENT, ERR_NOT_FOUND, "image", "name a tag of the layout",
                       "image layout '%s' has no tag '%s'", folder, colon + 1);
    *ret_digest = arena_strdup(arena, digest);
    return 0;
}

/* skopeo wants a policy; a machine without one gets its built-in "accept". */
static const char *policy_option(void)
{
    return access(POLICY_FILE, R_OK) == 0 ? "--tmpdir=/var/tmp" : "--insecure-policy";
}

/* The text of a line such as time="..." level=fatal msg="a \"b\": c", or all of LINE. */
static const char *logged_text(const char *line, struct arena *arena)
{
    const char *p = strstr(line, "msg=\"");
    _cleanup_strbuf_ struct strbuf b = STRBUF_INIT;

    if (p == NULL)
        return line;
    for (p += strlen("msg=\""); *p && *p != '"'; p++) {
        if (*p == '\\' && p[1] == 'n') {
            strbuf_addc(&b, ' ');
            p++;
        } else {
            p += *p == '\\' && p[1];
            strbuf_addc(&b, *p);
        }
    }
    return arena_strdup(arena, strbuf_str(&b));
}

/*
 * In place of what a tool said, which begins with what it was doing and ends with the reason: that
 * as a sentence, and all of it as detail behind (see engine_port.h). DONE is "fetched" or so.
 */
static int refuse_image(int r, const char *reference, const char *done, struct arena *arena,
                        struct err *err)
{
    const char *said, *reason, *next;
    size_t len;

    if (err == NULL || err->errnum != -EIO)
        return r;
    said = strstr(err->text, " failed: ");
    said = logged_text(said ? said + strlen(" failed: ") : err->text, arena);
    said = arena_strdup(arena, said);
    for (reason = said; (next = strstr(reason, ": ")) && next[2];)
        reason = next + 2;
    r = err_set(err, r, err->code, "image", NULL, "image '%.150s' cannot be %s: %.80s", reference,
                done, reason);
    len = strlen(err->text);
    snprintf(err->text + len, sizeof(err->text) - len, "\n%s", said);
    return r;
}

static int ask_registry(const char *reference, int cancel, struct arena *arena,
                        const char **ret_digest, struct err *err)
{
    _cleanup_strbuf_ struct strbuf out = STRBUF_INIT;
    const char *const argv[] = {"skopeo",   policy_option(), "inspect", "--no-tags",
                                "--format", "{{.Digest}}",   reference, NULL};
    int r = tool_run(argv, cancel, IMAGE_ASK_MS, &out, err);

    if (r < 0)
        return refuse_image(r, reference, "found", arena, err);
    while (out.len > 0 && out.data[out.len - 1] == '\n')
        strbuf_truncate(&out, out.len - 1);
    if (!digest_ok(strbuf_str(&out)))
        return err_set(err, -EIO, ERR_UNAVAILABLE, "image", NULL,
                       "the registry's answer about '%s' is not a digest", reference);
    *ret_digest = arena_strdup(arena, out.data);
    return 0;
}

/* What the registry said last is remembered in a file by the reference's hash. */
static int resolve_remote(const char *images_dir, const char *reference, int cancel,
                          struct arena *arena, const char **ret_digest, struct err *err)
{
    const char *file = arena_printf(arena, "%s/ref-%016" PRIx64, images_dir,
                                    map_hash(reference, strlen(reference)));
    _cleanup_free_ char *known = NULL;
    struct stat st;
    int r;

    if (stat(file, &st) == 0 && io_read_file(AT_FDCWD, file, 256, &known, NULL) == 0 &&
        !digest_ok(known)) {
        free(known);
        known = NULL;
    }
    if (known && clock_wall_ms() - (int64_t)st.st_mtim.tv_sec * MS_PER_S < IMAGE_TAG_MS) {
        *ret_digest = arena_strdup(arena, known);
        return 0;
    }
    r = ask_registry(reference, cancel, arena, ret_digest, err);
    if (r == 0)
        return io_write_file_atomic(AT_FDCWD, file, *ret_digest, strlen(*ret_digest), 0600, 0);
    if (known && r != -ECANCELED) {
        *ret_digest = arena_strdup(arena, known);
        return 0;
    }
    return r;
}

/* Places that the sandbox mounts something on; an image need not have them. */
static int make_places(const struct image *image, struct err *err)
{
    static const char *const places[] = {"/proc", "/dev",     "/sys",      "/tmp",
                                         "/run",  "/var/tmp", "/home/task"};

    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        int r = image_make_place(image, places[i], err);

        if (r < 0)
            return r;
    }
    return 0;
}

static int unpack(const char *source, const char *folder, int cancel, struct arena *arena,
                  struct err *err)
{
    const char *layout = arena_printf(arena, "%s.layout", folder);
    const char *bundle = arena_printf(arena, "%s.bundle", folder);
    const char *to = arena_printf(arena, "oci:%s:image", layout);
    const char *const copy[] = {"skopeo", policy_option(), "copy", "--quiet", source, to, NULL};
    const char *const open_[] = {
        "umoci", "unpack", "--image", arena_printf(arena, "%s:image", layout), bundle, NULL};
    struct image image = {.root = arena_printf(arena, "%s/rootfs", bundle)};
    int r;

    (void)io_remove_tree(AT_FDCWD, layout);
    (void)io_remove_tree(AT_FDCWD, bundle);
    r = tool_run(copy, cancel, IMAGE_FETCH_MS, NULL, err);
    if (r < 0)
        (void)refuse_image(r, source, "fetched", arena, err);
    if (r == 0) {
        r = tool_run(open_, cancel, IMAGE_FETCH_MS, NULL, err);
        if (r < 0)
            (void)refuse_image(r, source, "unpacked", arena, err);
    }
    if (r == 0)
        r = make_places(&image, err);
    /* umoci makes its folder for root alone. */
    if (r == 0 && chmod(bundle, 0711) < 0)
        r = -errno;
    if (r == 0 && rename(bundle, folder) < 0)
        r = err_set(err, -errno, ERR_UNAVAILABLE, "image", NULL, "image cannot be kept: %s",
                    strerror(errno));
    (void)io_remove_tree(AT_FDCWD, layout);
    (void)io_remove_tree(AT_FDCWD, bundle);
    return r;
}

static const char *const *string_list(struct json_object *process, const char *key,
                                      struct arena *arena)
{
    struct json_object *list = NULL;
    const char **out;
    size_t n;

    if (!json_object_object_get_ex(process, key, &list) ||
        !json_object_is_type(list, json_type_array))
        return arena_new_array(arena, const char *, 1);
    n = json_object_array_length(list);
    out = arena_new_array(arena, const char *, n + 1);
    for (size_t i = 0; i < n; i++)
        out[i] = arena_strdup(arena, json_object_get_string(json_object_array_get_idx(list, i)));
    return out;
}

/* umoci translates the image's settings into a runtime's config.json. */
static int read_settings(const char *folder, struct arena *arena, struct image *image,
                         struct err *err)
{
    _cleanup_(json_putp) struct json_object *config = NULL;
    struct json_object *process = NULL;
    int r = parse_file(AT_FDCWD, arena_printf(arena, "%s/config.json", folder), &config, err);

    if (r < 0)
        return r;
    (void)json_object_object_get_ex(config, "process", &process);
    image->env = string_list(process, "env", arena);
    image->args = string_list(process, "args", arena);
    return 0;
}

/* The same image by digest, so that a tag that moves meanwhile changes nothing. */
static const char *pin(const char *reference, const char *digest, struct arena *arena)
{
    const char *name = strrchr(reference, '/');
    size_t n = strlen(reference);

    if (strchr(reference, '@'))
        return reference;
    if (name && strchr(name, ':'))
        n = (size_t)(strchr(name, ':') - reference);
    return arena_printf(arena, "%.*s@%s", (int)n, reference, digest);
}

/* Unpacks unless that is done. Several may want the same: the first does it. */
static int unpack_once(const char *source, const char *folder, int cancel, struct arena *arena,
                       const struct image *image, struct err *err)
{
    const char *name = strrchr(folder, '/') + 1;
    const char *path = arena_printf(arena, "%.*s.lock-%s", (int)(name - folder), folder, name);
    _cleanup_close_ int lock = -1;

    if (access(image->root, F_OK) == 0)
        return 0;
    lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (lock < 0 || flock(lock, LOCK_EX) < 0)
        return err_set(err, -errno, ERR_UNAVAILABLE, "image", NULL, "image cannot be locked: %s",
                       strerror(errno));
    return access(image->root, F_OK) == 0 ? 0 : unpack(source, folder, cancel, arena, err);
}

int image_prepare(const char *images_dir, const char *reference, uint32_t uid, int cancel,
                  struct arena *arena, struct image *ret_image, struct err *err)
{
    struct image image = {0};
    const char *digest = NULL, *folder, *source = reference, *kind = "sha256";
    int r;

    if (text_starts_with(reference, OCI)) {
        /* A layout only claims its digests: what it holds must not pass for a registry's. */
        r = resolve_layout(reference, uid, arena, &digest, err);
        kind = arena_printf(arena, "local-%016" PRIx64, map_hash(reference, strlen(reference)));
    } else {
        if (!text_starts_with(reference, DOCKER))
            source = arena_printf(arena, "%s%s", DOCKER, reference);
        r = resolve_remote(images_dir, source, cancel, arena, &digest, err);
    }
    if (r < 0)
        return r;
    if (!text_starts_with(reference, OCI))
        source = pin(source, digest, arena);
    folder = arena_printf(arena, "%s/%s-%s", images_dir, kind, digest + strlen(DIGEST_PREFIX));
    image.root = arena_printf(arena, "%s/rootfs", folder);
    r = unpack_once(source, folder, cancel, arena, &image, err);
    if (r == 0)
        r = read_settings(folder, arena, &image, err);
    if (r == 0)
        *ret_image = image;
    return r;
}

int image_make_place(const struct image *image, const char *place, struct err *err)
{
    _cleanup_close_ int dir = open(image->root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    _cleanup_free_ char *copy = strdup(place);
    char *save = NULL;

    if (copy == NULL || dir < 0)
        return err_set(err, -ENOENT, ERR_UNAVAILABLE, "image", NULL, "image has gone");
    for (char *part = strtok_r(copy, "/", &save); part; part = strtok_r(NULL, "/", &save)) {
        int next;

        if (strcmp(part, "..") == 0)
            return err_set(err, -EINVAL, ERR_INVALID, NULL, "give a plain path",
                           "folder '%s' has '..' in it", place);
        /* For everybody, whatever the server's umask. */
        if (mkdirat(dir, part, 0755) == 0)
            (void)fchmodat(dir, part, 0755, 0);
        next = openat(dir, part, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (next < 0)
            return err_set(err, -errno, ERR_INVALID, NULL, "choose another folder",
                           "folder '%s' cannot be mounted in the image: '%s' is no folder there",
                           place, part);
        close(dir);
        dir = next;
    }
    return 0;
}
