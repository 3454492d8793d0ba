/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks in images: a small OCI layout is made here and run; no network is used. */
#include "fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "engine/local/image.h"
#include "engine/local/tool.h"

static struct fixture *f;
static char folder[64], reference[128];

static int make_layout(void)
{
    char layout[100], image[120];

    snprintf(layout, sizeof(layout), "%s/layout", folder);
    snprintf(image, sizeof(image), "%s:v1", layout);
    snprintf(reference, sizeof(reference), "oci:%s", image);
    const char *const steps[][12] = {
        {"umoci", "init", "--layout", layout},
        {"umoci", "new", "--image", image},
        {"umoci", "insert", "--image", image, getenv("ALLOT_IMAGE_PROBE"), "/bin/probe"},
        {"umoci", "config", "--image", image, "--config.env", "FROM_IMAGE=yes", "--config.cmd",
         "/bin/probe"},
        {"chmod", "-R", "a+rX", layout},
    };
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        struct err err = ERR_INIT;

        if (tool_run(steps[i], -1, 60000, NULL, &err) < 0) {
            print_error("%s\n", err.text);
            return -1;
        }
    }
    return 0;
}

static int up(void **state)
{
    f = fixture_new();
    if (f == NULL)
        return 0;
    if (access("/usr/bin/umoci", X_OK) < 0 || access("/usr/bin/skopeo", X_OK) < 0) {
        print_message("# umoci or skopeo is not installed: skipped\n");
        fixture_up(f);
        fixture_drop(f);
        f = NULL;
        return 0;
    }
    fixture_up(f);
    snprintf(folder, sizeof(folder), "/tmp/allot-image-XXXXXX");
    if (mkdtemp(folder) == NULL || chmod(folder, 0755) < 0)
        return -1;
    return make_layout();
}

static int down(void **state)
{
    if (f)
        (void)io_remove_tree(AT_FDCWD, folder);
    fixture_drop(f);
    return 0;
}

#define NEED_IMAGES() \
    if (f == NULL)    \
    skip()

static const char *const probe[] = {"/bin/probe", NULL};
static const char *const probe_more[] = {"probe", "more", NULL};
static const char *const nothing[] = {NULL};

/* How many unpacked images there are. */
static int unpacked(void)
{
    char path[100];
    struct dirent *e;
    int n = 0;
    DIR *dir;

    snprintf(path, sizeof(path), "%s/images", f->folder);
    dir = opendir(path);
    while ((e = readdir(dir)))
        n += strncmp(e->d_name, "local-", 6) == 0;
    closedir(dir);
    return n;
}

static void a_task_runs_in_its_image(void **state)
{
    NEED_IMAGES();
    f->workloads[1].command = probe;
    f->workloads[1].image = reference;
    f->workloads[1].env[0] = (struct model_pair){"LR", "0.1"};
    f->workloads[1].env_count = 1;
    fixture_start(f, 1, 0);
    assert_int_equal(fixture_wait(f, "1.0.0", ENGINE_EXITED).exit_code, 0);
    assert_string_equal(fixture_log(f, "1.0.0"), "image yes, workload 0.1\ncwd /home/task\n/bin 1\n"
                                                 "/etc -1\nroot closed\nwork open\ntmp open\n"
                                                 "arguments 0\npreload -\n");
}

static void the_second_task_finds_it_unpacked(void **state)
{
    NEED_IMAGES();
    f->workloads[1].command = probe_more; /* found by the PATH of the default environment */
    f->workloads[1].image = reference;
    fixture_start(f, 1, 0);
    assert_int_equal(fixture_wait(f, "1.0.0", ENGINE_EXITED).exit_code, 4);
    assert_int_equal(unpacked(), 1);
    fixture_start(f, 1, 1);
    assert_int_equal(fixture_wait(f, "1.1.0", ENGINE_EXITED).exit_code, 4);
    assert_int_equal(unpacked(), 1);
}

static void without_a_command_the_images_own_is_run(void **state)
{
    NEED_IMAGES();
    f->workloads[1].command = nothing;
    f->workloads[1].image = reference;
    fixture_start(f, 1, 0);
    assert_int_equal(fixture_wait(f, "1.0.0", ENGINE_EXITED).exit_code, 0);
}

static void a_workdir_is_mounted_into_the_image(void **state)
{
    char workdir[100];

    NEED_IMAGES();
    snprintf(workdir, sizeof(workdir), "%s/deep", folder);
    assert_int_equal(mkdir(workdir, 0777), 0);
    assert_int_equal(chmod(workdir, 0777), 0);
    f->workloads[1].command = probe;
    f->workloads[1].image = reference;
    f->workloads[1].workdir = workdir;
    fixture_start(f, 1, 0);
    assert_int_equal(fixture_wait(f, "1.0.0", ENGINE_EXITED).exit_code, 0);
    assert_non_null(strstr(fixture_log(f, "1.0.0"), workdir));
    assert_non_null(strstr(fixture_log(f, "1.0.0"), "work open"));
}

static void assert_refused(const char *image, const char *reason)
{
    f->workloads[1].command = probe;
    f->workloads[1].image = image;
    fixture_start(f, 1, 0);
    assert_non_null(strstr(fixture_wait(f, "1.0.0", ENGINE_REFUSED).message, reason));
}

static void a_tag_that_is_not_there_is_refused(void **state)
{
    char other[140];

    NEED_IMAGES();
    snprintf(other, sizeof(other), "oci:%s/layout:v2", folder);
    assert_refused(other, "has no tag 'v2'");
}

static void a_layout_that_is_closed_to_others_is_refused(void **state)
{
    NEED_IMAGES();
    assert_int_equal(chmod(folder, 0700), 0);
    assert_refused(reference, "Permission denied");
}

static void a_broken_layout_is_refused(void **state)
{
    char path[120];

    NEED_IMAGES();
    snprintf(path, sizeof(path), "%s/layout/blobs", folder);
    assert_int_equal(io_remove_tree(AT_FDCWD, path), 0);
    assert_refused(reference, "cannot be fetched: ");
    assert_int_equal(unpacked(), 0);
}

static void what_a_tool_says_is_detail_behind_a_sentence(void **state)
{
    NEED_IMAGES();
    assert_refused("docker://127.0.0.1:1/x:y",
                   "image 'docker://127.0.0.1:1/x:y' cannot be found: connection refused\n"
                   "Error parsing image name \"docker://127.0.0.1:1/x:y\": pinging ");
}

static void other_transports_are_refused(void **state)
{
    struct err err = ERR_INIT;

    assert_true(image_check("dir:/etc", &err) < 0);
    assert_true(image_check("docker-archive:/root/x.tar", &err) < 0);
    assert_true(image_check("containers-storage:x", &err) < 0);
    assert_true(image_check("http://host/x", &err) < 0);
    assert_true(image_check("--help", &err) < 0);
    assert_true(image_check("", &err) < 0);
    assert_true(image_check("name with blanks", &err) < 0);
    assert_true(image_check("oci:relative:tag", &err) < 0);
    assert_int_equal(image_check("docker://registry.example/team/train:1", &err), 0);
    assert_int_equal(image_check("registry.example:5000/train", &err), 0);
}

static void stopping_while_the_image_comes_ends_the_task(void **state)
{
    NEED_IMAGES();
    f->workloads[1].command = probe;
    f->workloads[1].image = reference;
    fixture_start(f, 1, 0);
    engine_local_ops()->stop(f->engine, "1.0.0", 0);
    fixture_wait(f, "1.0.0", ENGINE_EXITED);
    fixture_sleep_ms(300);
    assert_int_equal(fixture_count(f, "1.0.0", ENGINE_STARTED), 0);
}

static void places_are_made_without_following_links(void **state)
{
    struct image image = {.root = folder};
    struct err err = ERR_INIT;
    char path[100];

    NEED_IMAGES();
    snprintf(path, sizeof(path), "%s/link", folder);
    assert_int_equal(symlink("/etc", path), 0);
    assert_int_equal(image_make_place(&image, "/a/b/c", &err), 0);
    snprintf(path, sizeof(path), "%s/a/b/c", folder);
    assert_int_equal(access(path, F_OK), 0);
    assert_true(image_make_place(&image, "/link/x", &err) < 0);
    assert_int_equal(access("/etc/x", F_OK), -1);
    assert_true(image_make_place(&image, "/a/../../x", &err) < 0);
}

int main(void)
{
#define T(t) cmocka_unit_test_setup_teardown(t, up, down)
    const struct CMUnitTest tests[] = {
        T(a_task_runs_in_its_image),
        T(the_second_task_finds_it_unpacked),
        T(without_a_command_the_images_own_is_run),
        T(a_workdir_is_mounted_into_the_image),
        T(a_tag_that_is_not_there_is_refused),
        T(a_layout_that_is_closed_to_others_is_refused),
        T(a_broken_layout_is_refused),
        T(what_a_tool_says_is_detail_behind_a_sentence),
        cmocka_unit_test(other_transports_are_refused),
        T(stopping_while_the_image_comes_ends_the_task),
        T(places_are_made_without_following_links),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
