/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scope-bound ownership.
 *
 * A variable declared with one of these attributes is released when it leaves its scope, so
 * that functions read top-down with early returns and no error labels. Every destructor used
 * with them accepts NULL (or -1 for a descriptor). steal_ptr() and steal_fd() hand ownership
 * out of the scope:
 *
 *     _cleanup_free_ char *path = strdup(name);
 *     if (path == NULL)
 *         return -ENOMEM;
 *     ...
 *     *ret_path = steal_ptr(&path);
 *     return 0;
 */
#ifndef ALLOT_BASE_CLEANUP_H
#define ALLOT_BASE_CLEANUP_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define _cleanup_(f) __attribute__((cleanup(f)))
#define _cleanup_free_ _cleanup_(cleanup_free)
#define _cleanup_close_ _cleanup_(cleanup_close)
#define _cleanup_fclose_ _cleanup_(cleanup_fclose)

/* Defines `void T_destroyp(struct T **)` for use as _cleanup_(T_destroyp). */
#define DEFINE_CLEANUP(type, destroy, name)                                                     \
    static inline void name(type *p)                                                            \
    {                                                                                           \
        if (*p)                                                                                 \
            destroy(*p);                                                                        \
    }

static inline void cleanup_free(void *p)
{
    free(*(void **)p);
}

static inline void cleanup_close(int *fd)
{
    if (*fd >= 0)
        close(*fd);
}

static inline void cleanup_fclose(FILE **f)
{
    if (*f)
        fclose(*f);
}

/* Take the value and leave NULL behind. */
#define steal_ptr(p)                                                                            \
    ({                                                                                          \
        __typeof__(*(p)) stolen_ = *(p);                                                        \
        *(p) = NULL;                                                                            \
        stolen_;                                                                                \
    })

/* Take the descriptor and leave -1 behind. */
static inline int steal_fd(int *fd)
{
    int stolen = *fd;
    *fd = -1;
    return stolen;
}

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

#endif
