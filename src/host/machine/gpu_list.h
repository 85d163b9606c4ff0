/* SPDX-License-Identifier: BSD-3-Clause */
/* The physical GPUs that one vendor's driver shows, before any environment variable selects among
 * them. */
#ifndef MUSTER_HOST_MACHINE_GPU_LIST_H
#define MUSTER_HOST_MACHINE_GPU_LIST_H

#include <stdbool.h>

#include "base/text.h"

/* Both lists are indexed by the driver's device index and have the same length. A zeroed struct is
 * an empty list. */
struct gpu_list {
    struct text_list pci_addresses; /* "0000:3b:00.0", or "" when unknown */
    struct text_list uuids;         /* "GPU-…", or "" when unknown */
    bool has_uuids;                 /* whether the driver was asked for UUIDs at all */
};

static inline void gpu_list_clear(struct gpu_list *list) {
    text_list_clear(&list->pci_addresses);
    text_list_clear(&list->uuids);
    list->has_uuids = false;
}

#endif
