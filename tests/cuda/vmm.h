/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Physical memory of the virtual memory interface within one process: pieces that live while a
 * handle or a mapping refers to them. Made in vmm.c, shared with other processes in vmm_export.c.
 * All with driver.mutex.
 */
#ifndef ALLOT_TESTS_CUDA_VMM_H
#define ALLOT_TESTS_CUDA_VMM_H

#include "driver.h"

struct phys {
    uint64_t bytes, id;
    uint32_t real;
    uint32_t handles, maps;
    bool charged;
    int export; /* index in the shared file, or -1 */
    struct cu_alloc_prop prop;
};

/* The piece that HANDLE names, or NULL. */
struct phys *vmm_phys_of(cu_vmm handle);

/* A piece with one handle and nothing else yet, or NULL. */
struct phys *vmm_phys_new(void);

/* The piece of this process that has the place EXPORT in the shared file, or NULL. */
struct phys *vmm_phys_by_export(int export);

/* Ends PHYS, its charge and its share in an export, when nothing refers to it. */
void vmm_phys_end_if_unused(struct phys *phys);

/* This process lets its share of PHYS go; its charge moves to who holds it still. */
void vmm_export_let_go(struct phys *phys);

#endif
