/* SPDX-License-Identifier: Apache-2.0 */
/* cuInit: this process takes its slot in the file; ENTER's slow side; what is not simulated. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "driver.h"

#define NIL_BYTES 4096

/* Before cuInit: dead. A constant that reads like the page that is wiped in children. */
static const _Atomic uint32_t dead;

struct driver driver = {.alive = &dead, .mutex = PTHREAD_MUTEX_INITIALIZER};
__thread struct drv_thread drv_thread __attribute__((tls_model("initial-exec")));

static pthread_mutex_t init_mutex = PTHREAD_MUTEX_INITIALIZER;

int drv_unsimulated(unsigned index);
uint64_t allot_double_now_ns(void) __attribute__((visibility("default")));
void allot_double_sleep_until_ns(uint64_t time_ns) __attribute__((visibility("default")));

int drv_unsimulated(unsigned index)
{
    if (driver.sh != NULL && index < ARRAY_LEN(driver.sh->unsimulated))
        atomic_fetch_add(&driver.sh->unsimulated[index], 1);
    return CU_NOT_SUPPORTED;
}

/* The clock of the devices, for what stands in front of this library and sleeps by it. */
uint64_t allot_double_now_ns(void)
{
    return driver.sh != NULL ? dbl_now(driver.sh) : 0;
}

void allot_double_sleep_until_ns(uint64_t time_ns)
{
    if (driver.sh != NULL)
        dbl_sleep_until(driver.sh, time_ns);
}

/* One word of the list of visible devices: an ordinal, or the beginning of a uuid. */
static int visible_index(const char *word, size_t length)
{
    char uuid[48];
    char *end;
    unsigned long ordinal = strtoul(word, &end, 10);

    if (length > 0 && end == word + length && *word >= '0' && *word <= '9')
        return ordinal < driver.sh->config.devices ? (int)ordinal : -1;
    for (uint32_t d = 0; length > 4 && d < driver.sh->config.devices; d++) {
        dbl_uuid_text(dbl_info(driver.sh, d)->uuid, uuid);
        if (strncmp(uuid, word, length) == 0)
            return (int)d;
    }
    return -1;
}

/* The list ends at the first word that names no device, as the driver has it. */
static void find_visible(const char *list)
{
    driver.count = 0;
    if (list == NULL) {
        for (uint32_t d = 0; d < driver.sh->config.devices; d++)
            driver.visible[driver.count++] = d;
        return;
    }
    while (*list != '\0' && driver.count < DBL_DEVICES) {
        size_t length = strcspn(list, ",");
        int index = visible_index(list, length);

        if (index < 0)
            return;
        driver.visible[driver.count++] = (uint32_t)index;
        list += length;
        list += *list == ',';
    }
}

static uint64_t number_from(const char *name, uint64_t otherwise, uint64_t most)
{
    const char *text = getenv(name);
    char *end;
    unsigned long long value;

    if (text == NULL || *text < '0' || *text > '9')
        return otherwise;
    value = strtoull(text, &end, 10);
    return *end == '\0' && value <= most ? value : otherwise;
}

/* A page that reads zero in every child of this process, however it is made. */
static const _Atomic uint32_t *alive_page(void)
{
    _Atomic uint32_t *page =
        mmap(NULL, NIL_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (page == MAP_FAILED)
        return NULL;
    madvise(page, NIL_BYTES, MADV_WIPEONFORK);
    atomic_store(page, 1);
    return page;
}

static cu_result init(void)
{
    const _Atomic uint32_t *alive;
    int injected;

    if (driver.initialised) /* and not alive: a child of the process that was */
        return CU_NOT_INITIALIZED;
    if (dbl_open(dbl_file(), &driver.sh) < 0)
        return CU_NO_DEVICE;
    injected = dbl_injected(driver.sh, DBL_FAIL_INIT);
    if (injected != 0)
        return injected;
    find_visible(getenv("CUDA_VISIBLE_DEVICES"));
    if (driver.count == 0)
        return CU_NO_DEVICE;
    alive = alive_page();
    if (alive == NULL || dbl_claim(driver.sh, &driver.slot) < 0)
        return CU_OPERATING_SYSTEM;
    driver.proc = &driver.sh->procs[driver.slot];
    driver.proc->percent = (uint32_t)number_from("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", 100, 100);
    driver.kernel_ns = number_from("ALLOT_DOUBLE_KERNEL_NS", 10000, UINT64_C(1) << 40);
    driver.bench = driver.sh->config.mode == DBL_BENCH;
    driver.initialised = true;
    atomic_store_explicit(&driver.alive, alive, memory_order_release);
    return CU_OK;
}

cu_result cuInit(unsigned flags)
{
    cu_result result = CU_OK;

    if (flags != 0)
        return CU_INVALID_VALUE;
    if (atomic_load(drv_alive()))
        return CU_OK;
    pthread_mutex_lock(&init_mutex);
    if (!atomic_load(drv_alive()))
        result = init();
    pthread_mutex_unlock(&init_mutex);
    return result;
}

cu_result drv_enter_slow(void)
{
    if (drv_thread.in_callback)
        return CU_NOT_PERMITTED;
    for (;;) {
        atomic_fetch_add(&driver.proc->inside, 1);
        if (atomic_load(&driver.proc->check) == CU_PROCESS_RUNNING)
            return CU_OK;
        atomic_fetch_sub(&driver.proc->inside, 1);
        if (atomic_load(&driver.proc->check) == CU_PROCESS_FAILED)
            return CU_UNKNOWN;
        dbl_lock(driver.sh);
        if (atomic_load(&driver.proc->check) != CU_PROCESS_RUNNING)
            dbl_wait(driver.sh, driver.slot, DBL_NEVER);
        dbl_unlock(driver.sh);
    }
}
