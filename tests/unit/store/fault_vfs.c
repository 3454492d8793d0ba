/* SPDX-License-Identifier: Apache-2.0 */
#include "fault_vfs.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sqlite3.h>

/* What follows this header in memory is the real VFS's file. */
struct fault_file {
    sqlite3_file base;
    sqlite3_file *real;
    const char *name; /* SQLite keeps it while the file is open; NULL for temporary ones */
};

static struct {
    pthread_mutex_t lock;
    int calls, left, rc;
    bool sticky, struck;
    const char *synced_folder;
} fault = {.lock = PTHREAD_MUTEX_INITIALIZER};

static sqlite3_vfs *real_vfs;

void fault_set(int calls, int nth, int rc, bool sticky)
{
    pthread_mutex_lock(&fault.lock);
    fault.calls = calls;
    fault.left = nth;
    fault.rc = rc;
    fault.sticky = sticky;
    fault.struck = false;
    pthread_mutex_unlock(&fault.lock);
}

void fault_clear(void)
{
    fault_set(0, 0, 0, false);
}

bool fault_struck(void)
{
    pthread_mutex_lock(&fault.lock);
    bool struck = fault.struck;
    pthread_mutex_unlock(&fault.lock);
    return struck;
}

static int strike(enum fault_call call)
{
    int rc = SQLITE_OK;
    pthread_mutex_lock(&fault.lock);
    if (fault.calls & call) {
        if (fault.struck && fault.sticky)
            rc = fault.rc;
        else if (!fault.struck && --fault.left == 0) {
            fault.struck = true;
            rc = fault.rc;
        }
    }
    pthread_mutex_unlock(&fault.lock);
    return rc;
}

static sqlite3_file *real_of(sqlite3_file *file)
{
    return ((struct fault_file *)file)->real;
}

static int f_close(sqlite3_file *f)
{
    return real_of(f)->pMethods->xClose(real_of(f));
}

static int f_read(sqlite3_file *f, void *data, int n, sqlite3_int64 at)
{
    return real_of(f)->pMethods->xRead(real_of(f), data, n, at);
}

static int f_write(sqlite3_file *f, const void *data, int n, sqlite3_int64 at)
{
    int rc = strike(FAULT_WRITE);
    if (rc == SQLITE_OK)
        return real_of(f)->pMethods->xWrite(real_of(f), data, n, at);
    /* As a full disk does: part of it arrives. */
    real_of(f)->pMethods->xWrite(real_of(f), data, n / 2, at);
    return rc;
}

static int f_truncate(sqlite3_file *f, sqlite3_int64 size)
{
    int rc = strike(FAULT_TRUNCATE);
    return rc == SQLITE_OK ? real_of(f)->pMethods->xTruncate(real_of(f), size) : rc;
}

void fault_keep_synced(const char *folder)
{
    pthread_mutex_lock(&fault.lock);
    fault.synced_folder = folder;
    pthread_mutex_unlock(&fault.lock);
}

static void copy_path(char *path, size_t size, const char *folder, const char *name)
{
    snprintf(path, size, "%s/%s", folder, strrchr(name, '/') + 1);
}

static int keep_synced(struct fault_file *f)
{
    pthread_mutex_lock(&fault.lock);
    const char *folder = fault.synced_folder;
    pthread_mutex_unlock(&fault.lock);
    sqlite3_int64 size = 0;
    if (!folder || !f->name || f->real->pMethods->xFileSize(f->real, &size) != SQLITE_OK)
        return SQLITE_OK;
    char path[256];
    copy_path(path, sizeof(path), folder, f->name);
    char *data = malloc((size_t)size + 1);
    FILE *out = fopen(path, "w");
    bool ok = data && out && f->real->pMethods->xRead(f->real, data, (int)size, 0) == SQLITE_OK &&
              fwrite(data, 1, (size_t)size, out) == (size_t)size;
    free(data);
    if (out && fclose(out) != 0)
        ok = false;
    return ok ? SQLITE_OK : SQLITE_IOERR_FSYNC;
}

static int f_sync(sqlite3_file *f, int flags)
{
    int rc = strike(FAULT_SYNC);
    if (rc == SQLITE_OK)
        rc = real_of(f)->pMethods->xSync(real_of(f), flags);
    return rc == SQLITE_OK ? keep_synced((struct fault_file *)f) : rc;
}

static int f_size(sqlite3_file *f, sqlite3_int64 *ret_size)
{
    return real_of(f)->pMethods->xFileSize(real_of(f), ret_size);
}

static int f_lock(sqlite3_file *f, int level)
{
    return real_of(f)->pMethods->xLock(real_of(f), level);
}

static int f_unlock(sqlite3_file *f, int level)
{
    return real_of(f)->pMethods->xUnlock(real_of(f), level);
}

static int f_reserved(sqlite3_file *f, int *ret)
{
    return real_of(f)->pMethods->xCheckReservedLock(real_of(f), ret);
}

static int f_control(sqlite3_file *f, int op, void *arg)
{
    return real_of(f)->pMethods->xFileControl(real_of(f), op, arg);
}

static int f_sector(sqlite3_file *f)
{
    return real_of(f)->pMethods->xSectorSize(real_of(f));
}

static int f_device(sqlite3_file *f)
{
    return real_of(f)->pMethods->xDeviceCharacteristics(real_of(f));
}

static int f_shm_map(sqlite3_file *f, int page, int size, int extend, void volatile **ret)
{
    return real_of(f)->pMethods->xShmMap(real_of(f), page, size, extend, ret);
}

static int f_shm_lock(sqlite3_file *f, int offset, int n, int flags)
{
    return real_of(f)->pMethods->xShmLock(real_of(f), offset, n, flags);
}

static void f_shm_barrier(sqlite3_file *f)
{
    real_of(f)->pMethods->xShmBarrier(real_of(f));
}

static int f_shm_unmap(sqlite3_file *f, int remove)
{
    return real_of(f)->pMethods->xShmUnmap(real_of(f), remove);
}

static const sqlite3_io_methods methods = {
    .iVersion = 2,
    .xClose = f_close,
    .xRead = f_read,
    .xWrite = f_write,
    .xTruncate = f_truncate,
    .xSync = f_sync,
    .xFileSize = f_size,
    .xLock = f_lock,
    .xUnlock = f_unlock,
    .xCheckReservedLock = f_reserved,
    .xFileControl = f_control,
    .xSectorSize = f_sector,
    .xDeviceCharacteristics = f_device,
    .xShmMap = f_shm_map,
    .xShmLock = f_shm_lock,
    .xShmBarrier = f_shm_barrier,
    .xShmUnmap = f_shm_unmap,
};

static int v_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *ret_flags)
{
    struct fault_file *f = (struct fault_file *)file;
    f->real = (sqlite3_file *)(f + 1);
    f->name = name;
    int rc = real_vfs->xOpen(real_vfs, name, f->real, flags, ret_flags);
    f->base.pMethods = rc == SQLITE_OK ? &methods : NULL;
    return rc;
}

static int v_delete(sqlite3_vfs *vfs, const char *name, int sync)
{
    pthread_mutex_lock(&fault.lock);
    const char *folder = fault.synced_folder;
    pthread_mutex_unlock(&fault.lock);
    if (folder) {
        char path[256];
        copy_path(path, sizeof(path), folder, name);
        unlink(path);
    }
    return real_vfs->xDelete(real_vfs, name, sync);
}

static int v_access(sqlite3_vfs *vfs, const char *name, int flags, int *ret)
{
    return real_vfs->xAccess(real_vfs, name, flags, ret);
}

static int v_full_pathname(sqlite3_vfs *vfs, const char *name, int size, char *ret)
{
    return real_vfs->xFullPathname(real_vfs, name, size, ret);
}

void fault_vfs_register(void)
{
    static sqlite3_vfs vfs;
    if (real_vfs)
        return;
    real_vfs = sqlite3_vfs_find(NULL);
    vfs = *real_vfs; /* what is not replaced goes through with the real VFS's own data */
    vfs.iVersion = 2;
    vfs.pNext = NULL;
    vfs.zName = FAULT_VFS_NAME;
    vfs.szOsFile = (int)sizeof(struct fault_file) + real_vfs->szOsFile;
    vfs.xOpen = v_open;
    vfs.xDelete = v_delete;
    vfs.xAccess = v_access;
    vfs.xFullPathname = v_full_pathname;
    sqlite3_vfs_register(&vfs, 0);
}
