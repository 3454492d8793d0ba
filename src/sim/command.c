/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/command.h"

#include <errno.h>
#include <string.h>

#include "base/qty.h"

int sim_complain(const struct err *err)
{
    fprintf(stderr, "allot: %s\n", err->text);
    if (*err->remedy)
        fprintf(stderr, "hint: %s\n", err->remedy);
    return 2;
}

int sim_misused(const struct sim_command *command, const struct err *err)
{
    sim_complain(err);
    if (*err->remedy == '\0')
        fprintf(stderr, "hint: 'allot sim %s --help' lists the options\n", command->name);
    return 2;
}

/* What getopt_long() has just stumbled over. An unknown long option leaves optopt 0; one that has
 * a value too many is left in it, as an unknown letter is. */
static int refuse(char **argv, struct err *err)
{
    const char *word = argv[optind - 1];

    if (optopt == 0)
        return err_set(err, -EINVAL, ERR_INVALID, NULL, NULL, "unknown option '%.60s'", word);
    if (strncmp(word, "--", 2) == 0 && strchr(word, '='))
        return err_set(err, -EINVAL, ERR_INVALID, NULL, NULL, "option '%.*s' takes no value",
                       (int)strcspn(word, "="), word);
    return err_set(err, -EINVAL, ERR_INVALID, NULL, NULL, "unknown option '-%c'", optopt);
}

int sim_option(int argc, char **argv, const struct option *longs, const char **ret_name,
               struct err *err)
{
    int index = -1, c;

    opterr = 0;
    c = getopt_long(argc, argv, ":h", longs, &index);
    if (c == '?')
        return refuse(argv, err);
    if (c == ':')
        return err_set(err, -EINVAL, ERR_MISSING, NULL, NULL, "option '%.60s' needs a value",
                       argv[optind - 1]);
    if (c < 0)
        return 0;
    *ret_name = index >= 0 ? longs[index].name : "help";
    return c;
}

int sim_number(const char *name, const char *text, int64_t min, int64_t max, int64_t *ret_value,
               struct err *err)
{
    int64_t value;

    if (qty_parse_int(text, &value, NULL) < 0 || value < min || value > max)
        return err_set(err, -ERANGE, ERR_OUT_OF_RANGE, NULL, NULL,
                       "option '--%s' takes a whole number from %lld to %lld, not '%.40s'", name,
                       (long long)min, (long long)max, text);
    *ret_value = value;
    return 0;
}

int sim_no_operands(int argc, char **argv, struct err *err)
{
    if (optind >= argc)
        return 0;
    return err_set(err, -EINVAL, ERR_INVALID, NULL, NULL, "'%.60s' is one word too many",
                   argv[optind]);
}
