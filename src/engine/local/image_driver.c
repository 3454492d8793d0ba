/* SPDX-License-Identifier: Apache-2.0 */
/* What an image has that matters to the driver of the devices of its tasks. */
#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "base/vec.h"
#include "engine/local/image.h"

#define LOADER "lib64/ld-linux-x86-64.so.2"
#define CUDA "/usr/local"
#define LISTED_MAX 64

typedef VEC(const char *) names;

/* The folder PLACE of the image, by no link; -1: there is none. */
static int folder_open(const struct image *image, const char *place)
{
    _cleanup_close_ int dir = open(image->root, O_PATH | O_DIRECTORY | O_CLOEXEC);

    while (dir >= 0 && *place) {
        size_t n = strcspn(place, "/");
        char part[256];
        int next;

        if (n > 0 && n < sizeof(part)) {
            memcpy(part, place, n);
            part[n] = '\0';
            next = openat(dir, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
            close(dir);
            dir = next;
        }
        place += n + (place[n] == '/');
    }
    return steal_fd(&dir);
}

/* Entries of the image's folder PLACE that begin with PREFIX and are of TYPE (S_IFREG, S_IFDIR), as
 * paths in the image. */
static void list(const struct image *image, const char *place, const char *prefix, mode_t type,
                 struct arena *arena, names *ret)
{
    int fd = folder_open(image, place);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *entry;
    struct stat st;

    if (dir == NULL && fd >= 0)
        close(fd);
    while (dir && (entry = readdir(dir)))
        if (text_starts_with(entry->d_name, prefix) &&
            fstatat(fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
            (st.st_mode & S_IFMT) == type && ret->len < LISTED_MAX)
            vec_push(ret, arena_printf(arena, "%s/%s", place, entry->d_name));
    if (dir)
        closedir(dir);
}

const char *const *image_drivers(const struct image *image, struct arena *arena)
{
    static const char *const fixed[] = {"/usr/lib/x86_64-linux-gnu", "/usr/lib64",
                                        "/usr/local/nvidia/lib64", "/usr/local/nvidia/lib"};
    names found = {0}, cuda = {0};
    const char *const *result;

    for (size_t i = 0; i < ARRAY_LEN(fixed); i++)
        list(image, fixed[i], "libcuda.so", S_IFREG, arena, &found);
    list(image, CUDA, "cuda", S_IFDIR, arena, &cuda);
    for (size_t i = 0; i < cuda.len; i++)
        for (int real = 0; real < 2; real++)
            list(image, arena_printf(arena, "%s/compat%s", cuda.items[i], real ? "/lib.real" : ""),
                 "libcuda.so", S_IFREG, arena, &found);
    vec_push(&found, NULL);
    result = arena_memdup(arena, found.items, found.len * sizeof(found.items[0]));
    vec_done(&found);
    vec_done(&cuda);
    return result;
}

bool image_has_glibc(const struct image *image)
{
    _cleanup_close_ int dir = open(image->root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    struct stat st;

    return dir >= 0 && fstatat(dir, LOADER, &st, AT_SYMLINK_NOFOLLOW) == 0;
}
