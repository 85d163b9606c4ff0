/* SPDX-License-Identifier: BSD-3-Clause */
/* Physical GPUs as one vendor's driver shows them, before any environment variable selects among
 * them. */
#ifndef MUSTER_HOST_GPU_LIST_H
#define MUSTER_HOST_GPU_LIST_H

#include <stdbool.h>

#include "base/text.h"

/* Both lists go by the driver's index and are equally long. Zeroed is empty. */
struct gpu_list {
    struct text_list pci_addresses; /* "0000:3b:00.0", or "" where not known */
    struct text_list uuids;         /* "GPU-…", or "" where not known */
    bool has_uuids;                 /* whether the driver was asked for UUIDs at all */
};

static inline void gpu_list_clear(struct gpu_list *list) {
    text_list_clear(&list->pci_addresses);
    text_list_clear(&list->uuids);
    list->has_uuids = false;
}

#endif
