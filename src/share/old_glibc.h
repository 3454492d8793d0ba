/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shims are loaded into programs of images, whose C library may be older than the one that they
 * were built with. Functions that glibc 2.34 moved into libc.so are taken under the version that
 * they have always had, and the libraries which had them before are asked for (meson.build).
 *
 * To be included wherever one of these is called.
 */
#ifndef ALLOT_SHARE_OLD_GLIBC_H
#define ALLOT_SHARE_OLD_GLIBC_H

__asm__(".symver dlopen, dlopen@GLIBC_2.2.5\n"
        ".symver dlsym, dlsym@GLIBC_2.2.5\n"
        ".symver pthread_once, pthread_once@GLIBC_2.2.5");

#endif
