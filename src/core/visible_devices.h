/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the value of CUDA_VISIBLE_DEVICES (and of its AMD relatives) the way
 * torch/cuda/__init__.py does (_parse_visible_devices, _transform_uuid_to_ordinals,
 * _device_count_nvml): which physical devices a process sees, and in which order. */
#ifndef MUSTER_CORE_VISIBLE_DEVICES_H
#define MUSTER_CORE_VISIBLE_DEVICES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/failure.h"
#include "base/text.h"

/* Device indices below this one can be named; a machine never has more devices. */
#define VISIBLE_DEVICES_CEILING 4096

/* Ordinals of physical devices in the order the process numbers them. Zeroed is empty. */
struct visible_devices {
    int *ordinals;
    size_t count;
};

/* `value` NULL: all `physical_count` devices. Else a comma list of ordinals (each read up to its
 * first non-digit, so "1gpu" is 1) or of starts of UUIDs ("GPU-8932f937"): the list ends before the
 * first entry that is negative, no number, names no device, or fits several UUIDs; a repeated entry
 * means no device at all; an empty value means none.
 * `uuids` are the physical devices' UUIDs by ordinal; NULL when they are not known: then
 * FAILURE_MISSING for a list of UUIDs. "MIG-…" (one slice of a device): FAILURE_UNSUPPORTED, as
 * slices cannot be told apart by ordinals. FAILURE_LIMIT when `physical_count` is over the ceiling.
 * The caller clears the result. */
__attribute__((warn_unused_result)) enum failure_code visible_devices_select(const char *value,
    size_t physical_count, const struct text_list *uuids, struct visible_devices *out_visible);
void visible_devices_clear(struct visible_devices *visible);

#endif
