/* SPDX-License-Identifier: Apache-2.0 */
/* allot submit: hand work in and go. */
#include <errno.h>
#include <json-c/json.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json_writer.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/documents.h"
#include "cli/json.h"
#include "cli/options.h"
#include "cli/session.h"
#include "cli/workload_options.h"
#include "model/manifest.h"

static void print_ids(struct cli *cli, struct json_object *reply)
{
    size_t count = cli_json_len(reply, "workloads");

    if (cli->json) {
        cli_print_json(cli, reply);
        return;
    }
    if (count == 0)
        fprintf(cli->out, "%s\n", cli_safe(cli, cli_json_text(reply, "id")));
    for (size_t i = 0; i < count; i++)
        fprintf(cli->out, "%s\n",
                cli_safe(cli, cli_json_text(cli_json_at(reply, "workloads", i), "id")));
}

/* A document is a Workload manifest, or the body of POST /v1/workloads as it is. */
static int add_document(struct cli *cli, struct json_object *doc, struct json_writer *w,
                        struct err *err)
{
    struct model_manifest m = {0};
    const char *text;
    int r;

    if (cli_json_get(doc, "apiVersion") == NULL) {
        text = json_object_to_json_string_ext(doc, JSON_C_TO_STRING_PLAIN);
        json_raw(w, text, strlen(text));
        return 0;
    }
    r = model_manifest_decode(doc, &cli->arena, &m, err);
    if (r < 0)
        return r;
    if (m.kind != MODEL_MANIFEST_WORKLOAD)
        return err_set(err, -EINVAL, ERR_INVALID, "kind", "use 'allot apply -f' for it",
                       "submit takes workloads, not a %s", m.source);
    json_raw(w, m.body, strlen(m.body));
    return 0;
}

static int files_body(struct cli *cli, const struct cli_args *args, struct strbuf *body,
                      struct err *err)
{
    struct cli_documents docs = {0};
    struct json_writer w;
    int r = cli_documents_read(cli, args, "file", &docs, err);

    json_writer_init(&w, body);
    json_begin_object(&w);
    json_key(&w, "workloads");
    json_begin_array(&w);
    for (size_t i = 0; r == 0 && i < docs.len; i++) {
        r = add_document(cli, docs.items[i].json, &w, err);
        if (r < 0)
            cli_documents_locate(&docs.items[i], err);
    }
    if (r == 0) {
        json_end_array(&w);
        json_end_object(&w);
    }
    cli_documents_done(&docs);
    return r;
}

static int run(struct cli *cli, const struct cli_args *args)
{
    _cleanup_strbuf_ struct strbuf body = STRBUF_INIT;
    _cleanup_json_ struct json_object *reply = NULL;
    struct err err = ERR_INIT;
    bool dry = cli_option_given(args, "dry-run");
    int r;

    if (cli_option_given(args, "file") && args->command_count > 0) {
        err_set(&err, -EINVAL, ERR_INVALID, NULL, "give one of both",
                "a command and --file do not go together");
        return cli_fail_usage(cli, &err);
    }
    if (cli_option_given(args, "file")) {
        r = files_body(cli, args, &body, &err);
        if (r == 0)
            r = (dry ? cli_dry_run_body : cli_submit_body)(cli, body.data, &reply, &err);
    } else {
        r = cli_submit_options(cli, args, &reply, &err);
    }
    if (r < 0)
        return cli_fail(cli, &err);
    if (dry)
        cli_print_dry_run(cli, reply);
    else
        print_ids(cli, reply);
    return 0;
}

static const struct cli_option options[] = {
    {.name = "file",
     .letter = 'f',
     .arg = "FILE",
     .help = "workloads as YAML or JSON, one or many documents; - reads standard input",
     .complete = CLI_COMPLETE_FILE},
    {0},
};

const struct cli_command cli_submit = {
    .name = "submit",
    .group = CLI_WORK,
    .summary = "hand in a workload and print its id",
    .usage = "[OPTIONS] -- COMMAND [ARG...]",
    .description =
        "Hands in a workload and returns at once; its id is printed. What is printed is stored: "
        "it survives a crash of the server. With --file, all documents are handed in together: "
        "either all are accepted or none.",
    .examples = "allot submit --gpu 0.5 -- python3 train.py --lr 0.1\n"
                "allot submit --class batch --gpus 1 --max-retries 3 -- ./sweep.sh\n"
                "# would it start now? If not, why?\n"
                "allot submit --gpus 8 --dry-run -- ./train.sh\n"
                "# wait for it\n"
                "id=$(allot submit --gpus 2 -- ./job.sh) && allot logs -f \"$id\"",
    .options = options,
    .shared_options = cli_workload_options,
    .command_at = 1,
    .run = run,
};
