/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the value of CUDA_VISIBLE_DEVICES, or of the same variables for AMD: which physical devices
 * a process sees, and in which order. Matches torch/cuda/__init__.py (_parse_visible_devices,
 * _transform_uuid_to_ordinals, _device_count_nvml). */
#ifndef MUSTER_CORE_MACHINE_VISIBLE_DEVICES_H
#define MUSTER_CORE_MACHINE_VISIBLE_DEVICES_H

#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/failure.h"
#include "base/text.h"

/* The ordinals of physical devices, in the order in which the process numbers them. A zeroed struct
 * is valid and empty. */
struct visible_devices {
    int *ordinals;
    size_t count;
};

/* Selects the visible devices. With a NULL `value` they are all `physical_count` devices; with an
 * empty value there are none. Else `value` is a comma-separated list of ordinals (each is read up
 * to its first non-digit, so "1gpu" is 1) or of beginnings of UUIDs ("GPU-8932f937"). The list ends
 * before the first entry that is negative, is not a number, names no device, or fits several UUIDs.
 * A repeated entry means that no device is visible.
 *
 * `uuids` are the UUIDs of the physical devices by ordinal, or NULL when they are unknown.
 * FAILURE_MISSING for a list of UUIDs when `uuids` is NULL. FAILURE_UNSUPPORTED for "MIG-…" (one
 * slice of a device), since ordinals cannot tell slices apart. FAILURE_LIMIT when `physical_count`
 * is above the ceiling. The caller clears the result. */
__attribute__((warn_unused_result)) enum failure_code visible_devices_select(const char *value,
    size_t physical_count, const struct text_list *uuids, struct visible_devices *out_visible);
void visible_devices_clear(struct visible_devices *visible);

/* Reads the text by which AMD's compute driver describes a node of its topology
 * (/sys/class/kfd/kfd/topology/nodes/<n>/properties). It has a line "<name> <number>" per property.
 */

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

/* What the workers' Python has written when it was asked how many devices of a name there are
 * (agent/workers/device_question has the question). Plug-ins print what they like before the
 * answer, which is the last line that begins with its mark. */

enum device_answer {
    DEVICE_ANSWER_NONE,    /* nothing that makes sense */
    DEVICE_ANSWER_COUNT,   /* so many, 0 or more */
    DEVICE_ANSWER_UNKNOWN, /* nobody knows a device of this name, for that reason */
    DEVICE_ANSWER_TROUBLE, /* it cannot be told, for that reason */
};

/* Reads and changes `text`, to which the reason points: a line that can be shown. */
enum device_answer device_answer_read(char *text, int *out_count, const char **out_reason);

#endif
