/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the text by which AMD's compute driver describes a node of its topology
 * (/sys/class/kfd/kfd/topology/nodes/<n>/properties). It has a line "<name> <number>" per property.
 */
#ifndef MUSTER_CORE_MACHINE_KFD_PROPERTIES_H
#define MUSTER_CORE_MACHINE_KFD_PROPERTIES_H

#include <stdint.h>

#include "base/bytes.h"

/* The properties that Muster needs. A property that is not in the text is 0. */
struct kfd_properties {
    uint64_t simd_count; /* 0: the node is a CPU */
    uint64_t drm_render_minor;
    uint64_t domain;      /* PCI */
    uint64_t location_id; /* PCI bus << 8 | device << 3 | function */
    uint64_t unique_id;   /* 0: the device has no unique id */
};

/* Ignores lines that are not a property, and properties whose number does not fit. */
struct kfd_properties kfd_properties_parse(struct slice text);

#endif
