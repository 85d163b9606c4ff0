/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the text in which AMD's compute driver describes a node of its topology
 * (/sys/class/kfd/kfd/topology/nodes/<n>/properties): a line "<name> <number>" per property. */
#ifndef MUSTER_CORE_KFD_PROPERTIES_H
#define MUSTER_CORE_KFD_PROPERTIES_H

#include <stdint.h>

#include "base/bytes.h"

/* Those that matter here; 0 for one that is not in the text. */
struct kfd_properties {
    uint64_t simd_count; /* 0: a CPU and no GPU */
    uint64_t drm_render_minor;
    uint64_t domain;      /* PCI */
    uint64_t location_id; /* PCI bus << 8 | device << 3 | function */
    uint64_t unique_id;   /* 0: the device has none */
};

/* Lines that are no property, or one whose number does not fit, are passed over. */
struct kfd_properties kfd_properties_parse(struct slice text);

#endif
