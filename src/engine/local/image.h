/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Images: a root file system for tasks, unpacked once.
 *
 * References: `docker://HOST/NAME[:TAG|@DIGEST]`, `HOST/NAME[:TAG]` (the same), and
 * `oci:/FOLDER:TAG`, an OCI layout on this machine. skopeo copies, umoci unpacks; the result
 * lies in IMAGES/sha256-DIGEST and is shared, read-only, by every task that names the digest
 * (layouts, which can claim any digest, are kept apart by their path).
 * A tag is resolved anew after IMAGE_TAG_MS; when the registry does not answer then, the last
 * known digest is used. Unpacking happens in a temporary folder that is renamed at the end, so a
 * crash leaves nothing half done.
 *
 * An OCI layout must be readable by everybody (it is opened as the task's user would): naming a
 * path gives nobody more than they have. Whoever made it may be hostile, and so may a registry:
 * every step has a time limit, and only those who want the very same image wait for it.
 *
 * Blocking, for a helper thread.
 */
#ifndef ALLOT_ENGINE_LOCAL_IMAGE_H
#define ALLOT_ENGINE_LOCAL_IMAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"

#define IMAGE_ASK_MS ((int64_t)60 * 1000)        /* for a registry to answer */
#define IMAGE_FETCH_MS ((int64_t)15 * 60 * 1000) /* to copy an image, and to unpack it */
#define IMAGE_TAG_MS ((int64_t)5 * 60 * 1000)

struct image {
    const char *root;        /* absolute path of the unpacked root */
    const char *const *env;  /* "KEY=value", NULL-terminated */
    const char *const *args; /* entry point and its arguments, NULL-terminated */
};

/* 0, or -EINVAL with ERR: may REFERENCE be asked for at all? */
int image_check(const char *reference, struct err *err);

/*
 * Finds or fetches REFERENCE below IMAGES_DIR; UID is the user whose rights count for a local
 * layout; CANCEL is a descriptor that becomes readable when the server ends (-1 = none). Strings
 * into ARENA. -ENOENT, -EINVAL, -EIO, -ECANCELED, with the tools' own words in ERR.
 */
int image_prepare(const char *images_dir, const char *reference, uint32_t uid, int cancel,
                  struct arena *arena, struct image *ret_image, struct err *err);

/*
 * Makes sure that PLACE exists as a folder in the image, for a mount; links in the image are
 * not followed. -ELOOP when there is one on the way, -ENOTDIR for a file.
 */
int image_make_place(const struct image *image, const char *place, struct err *err);

/* Copies of the driver's libcuda.so.1 that the image brings, at the places where such are known to
 * be (paths in the image, NULL at the end, in ARENA). Files alone: links lead to them, or away. */
const char *const *image_drivers(const struct image *image, struct arena *arena);
/* Are its programs linked with glibc, which can preload a library of ours? */
bool image_has_glibc(const struct image *image);

#endif
