/* SPDX-License-Identifier: BSD-3-Clause */
/* What a plan needs to know of this machine: the CPUs that this process may use, the place of each
 * CPU in the machine, and the NUMA node of each accelerator. These are plain values:
 * host/machine_topology fills them in, and core/cpu_plan reads them. */
#ifndef MUSTER_CORE_MACHINE_MACHINE_DESCRIPTION_H
#define MUSTER_CORE_MACHINE_MACHINE_DESCRIPTION_H

#include <stddef.h>

/* The largest machine that is accepted. */
#define MACHINE_MAXIMUM_NODES 4096
#define MACHINE_MAXIMUM_DEVICES 4096

/* The NUMA node of a device whose node is unknown. */
#define MACHINE_NODE_UNKNOWN (-1)

/* One logical CPU. Two CPUs share a package, core, node or cache when they have the same number
 * there. */
struct machine_cpu {
    int cpu;     /* logical number */
    int package; /* physical package (socket) */
    int core;    /* physical core: its lowest logical CPU */
    int node;    /* NUMA node */
    /* Core complex: the lowest CPU that shares the last-level unified or data cache. */
    int cache_group;
};

/* A zeroed struct is valid: a machine without CPUs and devices. */
struct machine_description {
    struct machine_cpu *cpus; /* only CPUs of the affinity mask, in ascending order */
    size_t cpu_count;
    int *device_nodes; /* by device index; may be MACHINE_NODE_UNKNOWN */
    size_t device_count;
};

void machine_description_clear(struct machine_description *machine);

#endif
