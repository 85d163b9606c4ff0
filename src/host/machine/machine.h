/* SPDX-License-Identifier: BSD-3-Clause */
/* This machine, as the kernel tells of it: its CPUs and GPUs, and its memory. */
#ifndef MUSTER_HOST_MACHINE_MACHINE_H
#define MUSTER_HOST_MACHINE_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/failure.h"
#include "base/text.h"
#include "core/machine/cpu_plan.h"

/* Reads the machine from the kernel: the affinity mask from the scheduler, and the place of each
 * CPU from the files under /sys. It only describes; core/cpu_plan decides. */

#define MACHINE_TOPOLOGY_SYS_ROOT "/sys"

/* The CPUs this process may run on (sched_getaffinity). Their number is what `--nproc-per-node cpu`
 * means. */
__attribute__((warn_unused_result)) enum failure_code machine_topology_allowed_cpus(
    struct cpu_set_bits *out_allowed, struct failure *failure);

/* Describes the CPUs in `allowed` and the devices at `pci_addresses` (by device index,
 * "0000:3b:00.0"; an empty string for a device with unknown address). Reads files under `sys_root`
 * (MACHINE_TOPOLOGY_SYS_ROOT, or a directory of a test). A kernel built without NUMA has one node,
 * 0. A negative node of a device means node 0 (as in torch/numa/binding.py). A CPU without cache
 * files is a group of its own core. FAILURE_MISSING, FAILURE_MALFORMED or FAILURE_SYSTEM name the
 * file when something needed is not there. The caller clears the result. */
__attribute__((warn_unused_result)) enum failure_code machine_topology_read(const char *sys_root,
    const struct cpu_set_bits *allowed, const struct text_list *pci_addresses,
    struct machine_description *out_machine, struct failure *failure);

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
 * CUDA_VISIBLE_DEVICES) selects among them; see core/machine/cpu_plan.h. Devices are numbered in
 * PCI bus order. Matches torch/cuda/__init__.py device_count. */

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

/* How much memory this process may use: the least of what the machine has, what the process' cgroup
 * and the cgroups around it allow (version 1 and 2), and RLIMIT_AS; and how much of that is not in
 * use. And whether there may be more processes. */

/* In bytes. `root` is "" except in tests: the directory that has proc/self/cgroup and
 * sys/fs/cgroup.
 */
uint64_t memory_limit_read(const char *root);

/* The least of what the machine has available (MemAvailable) and what is left below the limit of
 * each of these cgroups. */
uint64_t memory_limit_room(const char *root);

/* Whether one of these cgroups has more processes and threads than may be added to it. */
bool task_limit_is_near(const char *root);

#endif
