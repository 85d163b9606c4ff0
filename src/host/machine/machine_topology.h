/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the machine from the kernel: the affinity mask from the scheduler, and the place of each
 * CPU from the files under /sys. It only describes; core/cpu_plan decides. */
#ifndef MUSTER_HOST_MACHINE_MACHINE_TOPOLOGY_H
#define MUSTER_HOST_MACHINE_MACHINE_TOPOLOGY_H

#include "base/failure.h"
#include "base/text.h"
#include "core/machine/cpu_plan.h"

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

#endif
