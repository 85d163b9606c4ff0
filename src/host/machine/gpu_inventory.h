/* SPDX-License-Identifier: BSD-3-Clause */
/* Which accelerators the workers on this machine will see, in the order in which they number them.
 * No driver is initialised for computing, and no context is created. NVML is loaded at run time if
 * it is there; otherwise the inventory reads what the kernel shows under /dev and /sys.
 *
 * What counts:
 *   NVIDIA  NVML's devices; where NVML is missing or does not start, the files /dev/nvidia<number>.
 *   AMD     GPU nodes of the kernel's compute driver (/sys/class/kfd, simd_count not 0) whose
 *           /dev/dri/renderD<minor> exists. A render node alone does not count, because any display
 *           adapter has one.
 *   Intel   only when asked for by name (XPU): render nodes of vendor 0x8086 driven by i915 or xe.
 * A slice of a device (CUDA_VISIBLE_DEVICES=MIG-…) counts as one device of unknown place.
 * CUDA_VISIBLE_DEVICES (AMD: ROCR_VISIBLE_DEVICES, then HIP_VISIBLE_DEVICES or
 * CUDA_VISIBLE_DEVICES) selects among them; see core/visible_devices.h. Devices are numbered in PCI
 * bus order. Matches torch/cuda/__init__.py device_count. */
#ifndef MUSTER_HOST_MACHINE_GPU_INVENTORY_H
#define MUSTER_HOST_MACHINE_GPU_INVENTORY_H

#include <stdbool.h>

#include "base/failure.h"
#include "base/text.h"

/* The physical GPUs that one vendor's driver shows, before any environment variable selects among
 * them. */

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

/* AMD's GPUs, as the kernel's compute driver (KFD) shows them: nodes with SIMD units whose render
 * node exists under /dev. A container sees the render nodes that it was given. */

/* The GPUs in the driver's order; empty when there is no driver or no device. UUIDs are spelled as
 * AMD's runtime spells them, "GPU-" and 16 hexadecimal digits. The caller clears the result. */
struct gpu_list gpu_amd_list(const char *dev_root, const char *sys_root);

/* Intel's GPUs: render nodes of vendor 0x8086 whose kernel driver can compute (i915, xe). As in
 * torch.xpu, the integrated graphics of a processor counts only when there is no other GPU. */

/* The GPUs in the order of their render nodes' numbers, without UUIDs. The caller clears the
 * result. */
struct gpu_list gpu_intel_list(const char *dev_root, const char *sys_root);

/* NVIDIA's GPUs, from NVML or from /dev. NVML is the driver's management library; it is loaded for
 * this question and unloaded afterwards. No CUDA context is created. */

/* NVML's devices, in PCI bus order. FAILURE_MISSING when the library is missing or is not NVML,
 * FAILURE_SYSTEM when it does not work (no driver loaded, …). The caller clears the result. */
__attribute__((warn_unused_result)) enum failure_code gpu_nvidia_ask_nvml(
    const char *library, struct gpu_list *out_list, struct failure *failure);

/* One device for each file <dev_root>/nvidia<number>; nothing else is known of it. The caller
 * clears the result. */
struct gpu_list gpu_nvidia_count_files(const char *dev_root);

/* Where to look. Tests use directories and libraries of their own. Strings are borrowed. */
struct gpu_inventory_source {
    const char *nvml_library; /* name or path for dlopen */
    const char *dev_root;
    const char *sys_root;
    const char *cuda_visible_devices; /* NULL: unset */
    const char *rocr_visible_devices;
    const char *hip_visible_devices;
    const char *ze_affinity_mask;
};

/* Fills in the real paths and this process' environment. The strings are valid until the
 * environment is changed. */
void gpu_inventory_source_init(struct gpu_inventory_source *source);

/* The devices that a worker sees, as PCI addresses ("0000:3b:00.0") by device index; an empty
 * string where the address is unknown. A zeroed struct is a machine without devices. */
struct gpu_inventory {
    struct text_list pci_addresses; /* .count is the number of devices */
};

void gpu_inventory_clear(struct gpu_inventory *inventory);

/* Lists NVIDIA's devices, else AMD's; the list may be empty, which is no failure. FAILURE_INVALID
 * when a variable selects by UUID and the UUIDs are unknown (no NVML). The caller clears the
 * result. */
__attribute__((warn_unused_result)) enum failure_code gpu_inventory_read(
    const struct gpu_inventory_source *source, struct gpu_inventory *out_inventory,
    struct failure *failure);

/* Lists Intel's devices (`--nproc-per-node xpu`). FAILURE_UNSUPPORTED when ZE_AFFINITY_MASK is set,
 * because only Intel's runtime knows which devices it selects. The caller clears the result. */
__attribute__((warn_unused_result)) enum failure_code gpu_inventory_read_xpu(
    const struct gpu_inventory_source *source, struct gpu_inventory *out_inventory,
    struct failure *failure);

#endif
