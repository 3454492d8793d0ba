/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/documents.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/strbuf.h"
#include "base/yaml.h"
#include "cli/cli.h"
#include "cli/json.h"
#include "cli/options.h"
#include "cli/session.h"
#include "model/json.h"

static int read_stdin(struct strbuf *text, struct err *err)
{
    char chunk[16384];
    size_t n;

    while ((n = fread(chunk, 1, sizeof(chunk), stdin)) > 0) {
        if (text->len + n > YAML_SIZE_MAX)
            return err_set(err, -EFBIG, ERR_TOO_LARGE, NULL, "split it", "input is too large");
        strbuf_add(text, chunk, n);
    }
    if (ferror(stdin))
        return err_set(err, -EIO, ERR_INVALID, NULL, NULL, "cannot read standard input");
    return 0;
}

static int read_text(const char *path, struct strbuf *text, struct err *err)
{
    char *data;
    size_t len;
    int r = io_read_file(AT_FDCWD, path, YAML_SIZE_MAX, &data, &len);

    if (r == -EFBIG)
        return err_set(err, r, ERR_TOO_LARGE, NULL, "split it", "'%s' is larger than 10 MiB", path);
    if (r < 0)
        return err_set(err, r, ERR_INVALID, NULL, NULL, "cannot read '%s': %s", path, strerror(-r));
    strbuf_add(text, data, len);
    free(data);
    return 0;
}

void cli_documents_locate(const struct cli_document *doc, struct err *err)
{
    char text[sizeof(err->text)];

    snprintf(text, sizeof(text), "%s", err->text);
    if (doc->number > 0)
        snprintf(err->text, sizeof(err->text), "%.100s, document %zu: %.250s", doc->path,
                 doc->number, text);
    else
        snprintf(err->text, sizeof(err->text), "%.100s: %.290s", doc->path, text);
}

static int add_file(struct cli *cli, const char *path, struct cli_documents *docs, struct err *err)
{
    _cleanup_strbuf_ struct strbuf text = STRBUF_INIT, array = STRBUF_INIT;
    _cleanup_json_ struct json_object *json = NULL;
    bool from_stdin = strcmp(path, "-") == 0;
    struct cli_document where = {.path = from_stdin ? "standard input"
                                                    : arena_strdup(&cli->arena, path)};
    int r = from_stdin ? read_stdin(&text, err) : read_text(path, &text, err);

    if (r < 0)
        return r;
    r = yaml_to_json(strbuf_str(&text), text.len, &array, err);
    if (r == 0)
        r = model_json_parse(strbuf_str(&array), array.len, &json, err);
    if (r < 0) {
        cli_documents_locate(&where, err);
        return r;
    }
    for (size_t i = 0; i < cli_json_len(json, ""); i++) {
        struct cli_document doc = {
            .path = where.path, .number = i + 1, .json = json_object_get(cli_json_at(json, "", i))};

        vec_push(docs, doc);
    }
    return 0;
}

static int is_manifest(const struct dirent *e)
{
    const char *dot = strrchr(e->d_name, '.');

    return dot && e->d_name[0] != '.' &&
           (strcmp(dot, ".yaml") == 0 || strcmp(dot, ".yml") == 0 || strcmp(dot, ".json") == 0);
}

static int add_folder(struct cli *cli, const char *path, struct cli_documents *docs,
                      struct err *err)
{
    struct dirent **entries;
    int count = scandir(path, &entries, is_manifest, alphasort), r = 0;

    if (count < 0)
        return err_set(err, -errno, ERR_INVALID, NULL, NULL, "cannot read folder '%s': %s", path,
                       strerror(errno));
    for (int i = 0; i < count; i++) {
        if (r == 0)
            r = add_file(cli, arena_printf(&cli->arena, "%s/%s", path, entries[i]->d_name), docs,
                         err);
        free(entries[i]);
    }
    free(entries);
    if (count == 0)
        return err_set(err, -ENOENT, ERR_NOT_FOUND, NULL, "it must hold .yaml, .yml or .json files",
                       "folder '%s' holds no documents", path);
    return r;
}

int cli_documents_read(struct cli *cli, const struct cli_args *args, const char *name,
                       struct cli_documents *ret_docs, struct err *err)
{
    const char *path;
    size_t it = 0;
    int r = 0;

    while (r == 0 && (path = cli_option_each(args, name, &it))) {
        struct stat st;

        if (strcmp(path, "-") != 0 && stat(path, &st) == 0 && S_ISDIR(st.st_mode))
            r = add_folder(cli, path, ret_docs, err);
        else
            r = add_file(cli, path, ret_docs, err);
    }
    if (r == 0 && ret_docs->len == 0)
        return err_set(err, -EINVAL, ERR_MISSING, NULL, NULL, "there are no documents to read");
    return r;
}

void cli_documents_done(struct cli_documents *docs)
{
    for (size_t i = 0; i < docs->len; i++)
        json_object_put(docs->items[i].json);
    vec_done(docs);
}
