/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"

static char folder[64];
static int dirfd_;

static int make_folder(void **state)
{
    snprintf(folder, sizeof(folder), "/tmp/allot-io-XXXXXX");
    if (mkdtemp(folder) == NULL)
        return -1;
    dirfd_ = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return dirfd_ < 0 ? -1 : 0;
}

static int drop_folder(void **state)
{
    close(dirfd_);
    return io_remove_tree(AT_FDCWD, folder);
}

static void what_was_written_is_read(void **state)
{
    static char big[100000];
    _cleanup_free_ char *data = NULL;
    size_t len;

    memset(big, 'x', sizeof(big));
    assert_int_equal(io_write_file_atomic(dirfd_, "f", big, sizeof(big), 0640, 1), 0);
    assert_int_equal(io_read_file(dirfd_, "f", sizeof(big), &data, &len), 0);
    assert_int_equal(len, sizeof(big));
    assert_memory_equal(data, big, len);
    assert_int_equal(data[len], '\0');
}

static void the_mode_is_exact(void **state)
{
    struct stat st;
    mode_t mask = umask(077);

    assert_int_equal(io_write_file_atomic(dirfd_, "f", "", 0, 0664, 0), 0);
    umask(mask);
    assert_int_equal(fstatat(dirfd_, "f", &st, 0), 0);
    assert_int_equal(st.st_mode & 07777, 0664);
}

static void a_large_file_is_refused(void **state)
{
    char *data = NULL;

    assert_int_equal(io_write_file_atomic(dirfd_, "f", "12345", 5, 0600, 0), 0);
    assert_int_equal(io_read_file(dirfd_, "f", 4, &data, NULL), -EFBIG);
    assert_null(data);
    assert_int_equal(io_read_file(dirfd_, "f", 5, &data, NULL), 0);
    free(data);
}

static void a_missing_file_is_named_by_errno(void **state)
{
    char *data = NULL;

    assert_int_equal(io_read_file(dirfd_, "none", 10, &data, NULL), -ENOENT);
    assert_int_equal(io_write_existing(dirfd_, "none", "x"), -ENOENT);
}

static void files_without_a_size_are_read(void **state)
{
    _cleanup_free_ char *data = NULL;
    size_t len;

    assert_int_equal(io_read_file(AT_FDCWD, "/proc/self/status", 1 << 20, &data, &len), 0);
    assert_true(len > 100);
}

static void a_failed_write_leaves_the_old_file_alone(void **state)
{
    _cleanup_free_ char *data = NULL;

    assert_int_equal(mkdirat(dirfd_, "d", 0700), 0);
    assert_int_equal(io_write_file_atomic(dirfd_, "d", "x", 1, 0600, 0), -EISDIR);
    assert_int_equal(io_write_file_atomic(dirfd_, "no/f", "x", 1, 0600, 0), -ENOENT);
    assert_int_equal(unlinkat(dirfd_, "d", AT_REMOVEDIR), 0);
    /* Nothing temporary is left: the folder can be removed. */
    assert_int_equal(rmdir(folder), 0);
    assert_int_equal(mkdir(folder, 0700), 0);
}

static void folders_are_made_with_their_parents(void **state)
{
    char path[128];
    struct stat st;

    snprintf(path, sizeof(path), "%s/a/b//c", folder);
    assert_int_equal(io_mkdirs(path, 0750), 0);
    assert_int_equal(io_mkdirs(path, 0750), 0);
    assert_int_equal(stat(path, &st), 0);
    assert_true(S_ISDIR(st.st_mode));
    assert_int_equal(io_write_file_atomic(dirfd_, "f", "", 0, 0600, 0), 0);
    snprintf(path, sizeof(path), "%s/f", folder);
    assert_int_equal(io_mkdirs(path, 0750), -ENOTDIR);
    snprintf(path, sizeof(path), "%s/f/g", folder);
    assert_int_equal(io_mkdirs(path, 0750), -ENOTDIR);
}

static void removal_does_not_follow_links(void **state)
{
    struct stat st;

    assert_int_equal(mkdirat(dirfd_, "keep", 0700), 0);
    assert_int_equal(io_write_file_atomic(dirfd_, "keep/f", "", 0, 0600, 0), 0);
    assert_int_equal(mkdirat(dirfd_, "tree", 0700), 0);
    assert_int_equal(symlinkat("../keep", dirfd_, "tree/link"), 0);
    assert_int_equal(symlinkat("keep", dirfd_, "toplink"), 0);
    assert_int_equal(io_remove_tree(dirfd_, "tree"), 0);
    assert_int_equal(io_remove_tree(dirfd_, "toplink"), 0);
    assert_int_equal(fstatat(dirfd_, "keep/f", &st, 0), 0);
    assert_int_equal(fstatat(dirfd_, "tree", &st, 0), -1);
}

static void removing_nothing_is_fine(void **state)
{
    assert_int_equal(io_remove_tree(dirfd_, "none"), 0);
}

/* Deeper than PATH_MAX, than the descriptors of a process, and without permissions on the way. */
static void removal_manages_any_depth(void **state)
{
    struct stat st;
    int fd = dup(dirfd_);

    for (int i = 0; i < 3000; i++) {
        int next;

        assert_int_equal(mkdirat(fd, "dddd", 0700), 0);
        next = openat(fd, "dddd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_true(next >= 0);
        if (i % 100 == 99)
            assert_int_equal(fchmod(fd, 0), 0);
        close(fd);
        fd = next;
    }
    close(fd);
    assert_int_equal(io_remove_tree(dirfd_, "dddd"), 0);
    assert_int_equal(fstatat(dirfd_, "dddd", &st, 0), -1);
}

static void writing_to_a_closed_pipe_fails(void **state)
{
    assert_int_equal(io_write_all(-1, "x", 1), -EBADF);
    assert_int_equal(io_write_all(-1, "", 0), 0);
}

#define IN_FOLDER(f) cmocka_unit_test_setup_teardown(f, make_folder, drop_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(what_was_written_is_read),
        IN_FOLDER(the_mode_is_exact),
        IN_FOLDER(a_large_file_is_refused),
        IN_FOLDER(a_missing_file_is_named_by_errno),
        IN_FOLDER(files_without_a_size_are_read),
        IN_FOLDER(a_failed_write_leaves_the_old_file_alone),
        IN_FOLDER(folders_are_made_with_their_parents),
        IN_FOLDER(removal_does_not_follow_links),
        IN_FOLDER(removing_nothing_is_fine),
        IN_FOLDER(removal_manages_any_depth),
        cmocka_unit_test(writing_to_a_closed_pipe_fails),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
