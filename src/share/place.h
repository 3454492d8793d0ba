/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the shim finds what belongs to it: fixed places inside the sandbox, so that nothing a
 * tenant sets in the environment leads it elsewhere. Only the build for tests (SHARE_TEST) asks
 * the environment: ALLOT_SHARE_FOLDER.
 */
#ifndef ALLOT_SHARE_PLACE_H
#define ALLOT_SHARE_PLACE_H

/* The strings live for ever. */
const char *share_place_driver(void); /* the driver's own libcuda.so */
const char *share_place_nvml(void);   /* the driver's own libnvidia-ml.so */
const char *share_place_socket(void); /* of the agent */
const char *share_place_open(void);   /* a file that is there where the driver may be used
                                         without the agent */

#endif
