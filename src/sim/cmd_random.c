/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "sim/command.h"
#include "sim/random_run.h"

enum { OPTION_REPLAY = 256, OPTION_SHRINK, OPTION_ONCE, OPTION_POINTS, OPTION_SAVE };

struct options {
    struct sim_random_options random;
    bool replay, shrink, help;
};

static int set_number(int c, const char *name, struct sim_random_options *o, struct err *err)
{
    if (c == 's')
        return sim_number(name, optarg, 0, INT64_MAX - INT32_MAX, &o->seed, err);
    return sim_number(name, optarg, 1, INT32_MAX, c == 'n' ? &o->seeds : &o->steps, err);
}

static int set(int c, const char *name, struct options *o, struct err *err)
{
    switch (c) {
    case 'n':
    case 's':
    case 'm':
        return set_number(c, name, &o->random, err);
    case 'f':
        return history_plan_parse(optarg, &o->random.plan, err);
    case OPTION_REPLAY:
        o->replay = true;
        return 0;
    case OPTION_SHRINK:
        o->shrink = true;
        return 0;
    case OPTION_ONCE:
        o->random.once = true;
        return 0;
    case OPTION_POINTS:
        o->random.points = true;
        return 0;
    case OPTION_SAVE:
        o->random.save = optarg;
        return 0;
    default:
        o->help = true;
        return 0;
    }
}

/* The files belong to --replay, and it to them. */
static int check_operands(int argc, char **argv, const struct options *o, struct err *err)
{
    if (!o->replay && o->shrink)
        return err_set(err, -EINVAL, ERR_MISSING, NULL, "one that fails is shrunk by itself",
                       "option '--shrink' goes with '--replay'");
    if (!o->replay)
        return sim_no_operands(argc, argv, err);
    if (optind >= argc)
        return err_set(err, -EINVAL, ERR_MISSING, NULL, "allot sim random --replay FILE...",
                       "name the files that '--replay' is to play");
    return 0;
}

static int random_main(int argc, char **argv)
{
    static const struct option longs[] = {
        {"seed", required_argument, NULL, 's'},
        {"seeds", required_argument, NULL, 'n'},
        {"steps", required_argument, NULL, 'm'},
        {"faults", required_argument, NULL, 'f'},
        {"replay", no_argument, NULL, OPTION_REPLAY},
        {"shrink", no_argument, NULL, OPTION_SHRINK},
        {"once", no_argument, NULL, OPTION_ONCE},
        {"crash-points", no_argument, NULL, OPTION_POINTS},
        {"save", required_argument, NULL, OPTION_SAVE},
        {"help", no_argument, NULL, 'h'},
        {0},
    };
    struct options o = {.random = {.seeds = 1, .steps = 10000, .seed = 1}};
    struct err err = ERR_INIT;
    const char *name;
    int r = history_plan_parse("default", &o.random.plan, &err);

    optind = 0; /* the program may have parsed options of its own before */
    for (int c = 1; r == 0 && c > 0;) {
        c = sim_option(argc, argv, longs, &name, &err);
        r = c > 0 ? set(c, name, &o, &err) : c;
    }
    if (r == 0 && o.help)
        return sim_usage(&sim_cmd_random, stdout, 0);
    if (r == 0)
        r = check_operands(argc, argv, &o, &err);
    if (r < 0)
        return sim_misused(&sim_cmd_random, &err);
    if (o.replay)
        return sim_random_replay(argv + optind, (size_t)(argc - optind), o.shrink, stdout);
    return sim_random_run(&o.random, stdout);
}

const struct sim_command sim_cmd_random = {
    .name = "random",
    .summary = "play random histories of the whole control plane, faults included",
    .usage =
        "usage: allot sim random [--seed N] [--seeds COUNT] [--steps M] [--faults PLAN]\n"
        "                        [--once] [--crash-points] [--save FILE]\n"
        "       allot sim random --replay [--shrink] FILE...\n"
        "\n"
        "Plays random histories of the whole control plane, faults included, and checks\n"
        "its invariants after every step. One that fails is shrunk to the steps that\n"
        "matter. "
        "Prints TAP; exits 1 if anything failed.\n"
        "\n"
        "  --seed N        the first seed (1)\n"
        "  --seeds COUNT   how many histories (1)\n"
        "  --steps M       steps of each (10000)\n"
        "  --faults PLAN   'none', 'default', 'heavy', or rates in a thousand steps:\n"
        "                  crash=20,reboot=10,disk=5,late=10,dup=10,reorder=10,nodes=5,\n"
        "                  clock=3,quota=5,refuse=5,lost=5 (reboot: in a hundred crashes)\n"
        "  --once          do not play each a second time to compare the traces\n"
        "  --crash-points  play each again with one more crash, at each commit, of each\n"
        "                  kind\n"
        "  --save FILE     write the steps of a failing history, shrunk, to FILE\n"
        "  --replay        play the steps in FILEs\n"
        "  --shrink        and shrink those that fail\n",
    .run = random_main,
};
