/* SPDX-License-Identifier: Apache-2.0 */
#include "driven.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"

static char work[64], file[96], agent[96];

static void copy_in(const char *from, const char *name)
{
    _cleanup_free_ char *data = NULL;
    char path[128];
    size_t len;
    FILE *to;

    assert_int_equal(io_read_file(AT_FDCWD, from, (size_t)1 << 26, &data, &len), 0);
    snprintf(path, sizeof(path), "%s/%s", work, name);
    to = fopen(path, "we");
    assert_non_null(to);
    assert_int_equal(fwrite(data, 1, len, to), len);
    fclose(to);
    chmod(path, 0755);
}

/* The agent, told where the devices are: a server starts it with nothing in its environment. */
static void make_agent(void)
{
    FILE *to;

    snprintf(agent, sizeof(agent), "%s/agent", work);
    to = fopen(agent, "we");
    assert_non_null(to);
    fprintf(to, "#!/bin/sh\n%s=%s exec %s \"$@\"\n", DBL_FILE_ENV, file, getenv("ALLOT_GPU_AGENT"));
    fclose(to);
    chmod(agent, 0755);
}

void driven_up(struct fixture *f, enum dbl_mode mode)
{
    static const char *roots[] = {work, NULL};
    struct dbl_config config = dbl_config_default;

    snprintf(work, sizeof(work), "/tmp/allot-busy-XXXXXX");
    assert_non_null(mkdtemp(work));
    chmod(work, 0777);
    copy_in(getenv("ALLOT_GPU_WORKER"), "gpu_worker");
    copy_in(getenv("ALLOT_CUDA_LIBRARY"), "libcuda.so.1");
    config.devices = 2;
    config.mode = mode;
    snprintf(file, sizeof(file), "%s/devices", work);
    assert_int_equal(dbl_create(file, &config), 0);
    chmod(file, 0666);
    make_agent();
    setenv(DBL_FILE_ENV, file, 1);
    f->config.devices = NULL;
    f->config.workdir_roots = roots;
    f->config.share_library = getenv("ALLOT_SHARE_LIBRARY");
    f->config.agent_path = agent;
    fixture_up(f);
    assert_int_equal(fixture_wait(f, NULL, ENGINE_NODE).devices, 2);
}

void driven_begin(struct fixture *f, int n, const char *script, uint16_t device, int32_t milli)
{
    f->workloads[n].workdir = work;
    f->workloads[n].env[0] = (struct model_pair){"LD_LIBRARY_PATH", work};
    f->workloads[n].env[1] = (struct model_pair){DBL_FILE_ENV, file};
    f->workloads[n].env_count = f->workloads[n].env[2].key ? 3 : 2;
    f->request.device_milli = milli;
    f->devices[0] = device;
    fixture_script(f, n, script);
    fixture_start(f, n, 0);
}

void driven_down(struct fixture *f)
{
    fixture_drop(f);
    unsetenv(DBL_FILE_ENV);
    if (work[0])
        (void)io_remove_tree(AT_FDCWD, work);
}

/* By the tool: a process opens one file of devices, and this one sees several. */
uint64_t driven_held(uint32_t device)
{
    unsigned long long held = UINT64_MAX;
    char line[256], wanted[32];
    FILE *tool;

    snprintf(line, sizeof(line), "%s show %s", getenv("ALLOT_CUDA_DOUBLE"), file);
    snprintf(wanted, sizeof(wanted), "device %u ", device);
    tool = popen(line, "r");
    assert_non_null(tool);
    while (fgets(line, sizeof(line), tool))
        if (strncmp(line, wanted, strlen(wanted)) == 0)
            assert_int_equal(sscanf(strstr(line, ": "), ": %llu of", &held), 1);
    assert_int_equal(pclose(tool), 0);
    return held;
}

const char *driven_file(void)
{
    return file;
}
