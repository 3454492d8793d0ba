/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/source.h"

#include <errno.h>

#include "base/cleanup.h"

bool source_option(struct source *s, int option, const char *value)
{
    if (option == SOURCE_DATA)
        s->place.data = value;
    else if (option == SOURCE_SERVER)
        s->place.server = value;
    else if (option == SOURCE_TOKEN)
        s->place.token = value;
    else
        return false;
    return true;
}

int source_bad_option(int c, char **argv, struct err *err)
{
    char remedy[80];

    snprintf(remedy, sizeof(remedy), "'allot sim %s --help' lists the options", argv[0]);
    return err_set(err, -EINVAL, ERR_INVALID, NULL, remedy,
                   c == ':' ? "option '%.60s' needs a value" : "there is no option '%.60s'",
                   argv[optind - 1]);
}

int source_operands(struct source *s, int argc, char **argv, struct err *err)
{
    if (optind + 1 < argc)
        return err_set(err, -EINVAL, ERR_INVALID, NULL, "name one history",
                       "'%.100s' is one word too many", argv[optind + 1]);
    s->file = optind < argc ? argv[optind] : NULL;
    if ((s->file != NULL) + (s->place.data != NULL) + (s->place.server != NULL) > 1)
        return err_set(err, -EINVAL, ERR_INVALID, NULL,
                       "name a file, or give --data, or --server, or none of them",
                       "more than one history is named");
    return 0;
}

int source_read(const struct source *s, const struct sim_records *records, struct past *ret_past,
                struct err *err)
{
    _cleanup_fclose_ FILE *file = NULL;
    const char *name;
    int r;

    if (s->file)
        return past_read(s->file, ret_past, err);
    if (records == NULL)
        return err_set(err, -EINVAL, ERR_INVALID, NULL,
                       "name a file of 'allot export history', or - for standard input",
                       "no history is named");
    r = records->open(records->ctx, &s->place, &file, &name, err);
    return r < 0 ? r : past_read_stream(file, name, ret_past, err);
}
