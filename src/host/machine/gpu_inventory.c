/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/machine/gpu_inventory.h"

#include <stdlib.h>

#include "core/machine/visible_devices.h"
#include "host/machine/gpu_amd.h"
#include "host/machine/gpu_intel.h"
#include "host/machine/gpu_list.h"
#include "host/machine/gpu_nvidia.h"

#define NVML_LIBRARY "libnvidia-ml.so.1"

void gpu_inventory_source_init(struct gpu_inventory_source *source) {
    *source = (struct gpu_inventory_source){
        .nvml_library = NVML_LIBRARY,
        .dev_root = "/dev",
        .sys_root = "/sys",
        .cuda_visible_devices = getenv("CUDA_VISIBLE_DEVICES"),
        .rocr_visible_devices = getenv("ROCR_VISIBLE_DEVICES"),
        .hip_visible_devices = getenv("HIP_VISIBLE_DEVICES"),
        .ze_affinity_mask = getenv("ZE_AFFINITY_MASK"),
    };
}

void gpu_inventory_clear(struct gpu_inventory *inventory) {
    text_list_clear(&inventory->pci_addresses);
}

static void add_unknown_device(struct gpu_list *list) {
    text_list_add(&list->pci_addresses, "");
    text_list_add(&list->uuids, "");
}

/* Keeps only the devices that the variable's value selects. */
static enum failure_code keep_visible(
    struct gpu_list *list, const char *name, const char *value, struct failure *failure) {
    struct visible_devices visible = {0};
    enum failure_code code = visible_devices_select(
        value, list->pci_addresses.count, list->has_uuids ? &list->uuids : NULL, &visible);
    struct gpu_list kept = {.has_uuids = list->has_uuids};
    if (code == FAILURE_UNSUPPORTED) {
        add_unknown_device(
            &kept); /* slices (MIG) count as one, because CUDA shows a process only one of them */
    } else if (code != FAILURE_NONE) {
        return failure_set(failure, FAILURE_INVALID,
            "%s=%s names devices by UUID, which only NVML (" NVML_LIBRARY
            ") can tell apart: name them by number",
            name, value);
    }
    for (size_t i = 0; i < visible.count; i++) {
        text_list_add(&kept.pci_addresses, list->pci_addresses.items[visible.ordinals[i]]);
        text_list_add(&kept.uuids, list->uuids.items[visible.ordinals[i]]);
    }
    visible_devices_clear(&visible);
    gpu_list_clear(list);
    *list = kept;
    return FAILURE_NONE;
}

static enum failure_code read_nvidia(
    const struct gpu_inventory_source *source, struct gpu_list *list, struct failure *failure) {
    if (gpu_nvidia_ask_nvml(source->nvml_library, list, NULL) != FAILURE_NONE) {
        *list = gpu_nvidia_count_files(source->dev_root);
    }
    if (list->pci_addresses.count == 0) {
        return FAILURE_NONE;
    }
    return keep_visible(list, "CUDA_VISIBLE_DEVICES", source->cuda_visible_devices, failure);
}

/* ROCR_VISIBLE_DEVICES applies in a lower layer than the other two variables, which number the
 * devices that it leaves. When it is set, PyTorch reads only HIP_VISIBLE_DEVICES of the other
 * two. */
static enum failure_code read_amd(
    const struct gpu_inventory_source *source, struct gpu_list *list, struct failure *failure) {
    *list = gpu_amd_list(source->dev_root, source->sys_root);
    if (list->pci_addresses.count == 0) {
        return FAILURE_NONE;
    }
    enum failure_code code =
        keep_visible(list, "ROCR_VISIBLE_DEVICES", source->rocr_visible_devices, failure);
    if (code != FAILURE_NONE) {
        return code;
    }
    if (source->hip_visible_devices != NULL) {
        return keep_visible(list, "HIP_VISIBLE_DEVICES", source->hip_visible_devices, failure);
    }
    if (source->rocr_visible_devices != NULL) {
        return FAILURE_NONE;
    }
    return keep_visible(list, "CUDA_VISIBLE_DEVICES", source->cuda_visible_devices, failure);
}

static void take_addresses(struct gpu_list *list, struct gpu_inventory *inventory) {
    inventory->pci_addresses = list->pci_addresses;
    list->pci_addresses = (struct text_list){0};
    gpu_list_clear(list);
}

enum failure_code gpu_inventory_read(const struct gpu_inventory_source *source,
    struct gpu_inventory *out_inventory, struct failure *failure) {
    struct gpu_list list = {0};
    enum failure_code code = read_nvidia(source, &list, failure);
    if (code == FAILURE_NONE && list.pci_addresses.count == 0) {
        gpu_list_clear(&list);
        code = read_amd(source, &list, failure);
    }
    if (code != FAILURE_NONE) {
        gpu_list_clear(&list);
        return code;
    }
    take_addresses(&list, out_inventory);
    return FAILURE_NONE;
}

enum failure_code gpu_inventory_read_xpu(const struct gpu_inventory_source *source,
    struct gpu_inventory *out_inventory, struct failure *failure) {
    if (source->ze_affinity_mask != NULL && source->ze_affinity_mask[0] != '\0') {
        return failure_set(failure, FAILURE_UNSUPPORTED,
            "ZE_AFFINITY_MASK=%s is set, and only Intel's runtime knows how many devices that "
            "leaves: give the number of workers",
            source->ze_affinity_mask);
    }
    struct gpu_list list = gpu_intel_list(source->dev_root, source->sys_root);
    take_addresses(&list, out_inventory);
    return FAILURE_NONE;
}
