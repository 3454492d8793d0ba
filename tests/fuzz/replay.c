/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a fuzz target over the files of its corpus without a fuzzer. Each file is one test: it
 * is given as it is, cut off at every length, and with single bytes changed; the changes follow
 * from the name of the file, so that every run is the same.
 */
#include <dirent.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/map.h"
#include "base/rng.h"
#include "fuzz.h"

#define INPUT_MAX ((size_t)1024 * 1024)
#define CUTS_MAX ((size_t)1024)
#define CHANGES 500

static void give(const char *data, size_t size)
{
    /* A copy of its own size, so that a sanitizer sees a read behind the end. */
    _cleanup_free_ uint8_t *copy = malloc(size ? size : 1);

    if (copy == NULL)
        abort();
    memcpy(copy, data, size);
    (void)LLVMFuzzerTestOneInput(copy, size);
}

static void change_bytes(const char *name, char *data, size_t size)
{
    /* What tends to mean something to a parser, beside random bytes. */
    static const char telling[] = "\"'{}[]:,-+.0129eE \n\t#&*!|>%@`\\/~\0\x7f\xff\xc3";
    struct rng rng;

    rng_seed(&rng, map_hash(name, strlen(name)));
    for (int i = 0; i < CHANGES && size > 0; i++) {
        size_t at = rng_below(&rng, size);
        char former = data[at];

        data[at] = rng_below(&rng, 4) ? telling[rng_below(&rng, sizeof(telling) - 1)]
                                      : (char)rng_below(&rng, 256);
        give(data, size);
        data[at] = former;
    }
}

static int replay(int dirfd, const char *name)
{
    _cleanup_free_ char *data = NULL;
    size_t size;
    int r = io_read_file(dirfd, name, INPUT_MAX, &data, &size);

    if (r < 0)
        return r;
    give(data, size);
    for (size_t cut = 0; cut < size && cut < CUTS_MAX; cut++)
        give(data, cut);
    change_bytes(name, data, size);
    return 0;
}

static int is_visible(const struct dirent *e)
{
    return e->d_name[0] != '.';
}

int main(int argc, char **argv)
{
    struct dirent **files;
    int n = argc == 2 ? scandir(argv[1], &files, is_visible, alphasort) : -1;
    int failed = 0;
    DIR *dir;

    if (n < 0) {
        fprintf(stderr, "usage: %s CORPUS\n", argv[0]);
        return 2;
    }
    dir = opendir(argv[1]);
    printf("1..%d\n", n);
    for (int i = 0; i < n; i++) {
        int r;

        printf("# %s\n", files[i]->d_name);
        fflush(stdout); /* the target may end the process */
        r = dir ? replay(dirfd(dir), files[i]->d_name) : -1;
        printf("%s %d - %s\n", r == 0 ? "ok" : "not ok", i + 1, files[i]->d_name);
        failed |= r != 0;
        free(files[i]);
    }
    free(files);
    if (dir)
        closedir(dir);
    return failed;
}
