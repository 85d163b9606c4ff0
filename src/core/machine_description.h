/* SPDX-License-Identifier: BSD-3-Clause */
/* What a plan needs to know of this machine: the CPUs this process may use, where each of them
 * sits, and on which NUMA node each accelerator sits. Plain values; host/machine_topology fills
 * them in, core/cpu_plan reads them. */
#ifndef MUSTER_CORE_MACHINE_DESCRIPTION_H
#define MUSTER_CORE_MACHINE_DESCRIPTION_H

#include <stddef.h>

/* Ceilings of what a machine may claim to have. */
#define MACHINE_MAXIMUM_NODES 4096
#define MACHINE_MAXIMUM_DEVICES 4096

/* The NUMA node of a device whose place could not be found out. */
#define MACHINE_NODE_UNKNOWN (-1)

/* One logical CPU. The identities only have to be equal for CPUs that share the thing. */
struct machine_cpu {
    int cpu;         /* logical number */
    int package;     /* physical package (socket) */
    int core;        /* physical core: the lowest thread sibling */
    int node;        /* NUMA node */
    int cache_group; /* core complex: the lowest CPU that shares the highest unified or data cache
                      */
};

/* A zeroed struct is a valid machine without anything. */
struct machine_description {
    struct machine_cpu *cpus; /* only CPUs of the affinity mask, by ascending number */
    size_t cpu_count;
    int *device_nodes; /* by device index; MACHINE_NODE_UNKNOWN possible */
    size_t device_count;
};

void machine_description_clear(struct machine_description *machine);

#endif
