/* SPDX-License-Identifier: BSD-3-Clause */
/* Plans to which CPUs each worker of this node is bound (--numa-binding). It plans from a
 * description of the machine. The host floor reads the machine and binds the workers.
 *
 * With accelerators it follows torch/numa/binding.py: the device index is the local rank, and the
 * worker is bound near its device. On a machine without accelerators PyTorch refuses; Muster
 * spreads the workers over the CPUs instead. */
#ifndef MUSTER_CORE_MACHINE_CPU_PLAN_H
#define MUSTER_CORE_MACHINE_CPU_PLAN_H

#include <stddef.h>

#include "base/failure.h"
#include "base/text.h"
#include "core/machine/cpu_set.h"
#include "core/launch/launch_config.h"
#include "core/machine/machine_description.h"

/* A CPU set per local rank. `count` is 0 when no worker is to be bound. */
struct cpu_plan {
    struct cpu_set_bits *sets;
    size_t count;
};

enum cpu_plan_trouble {
    CPU_PLAN_NO_TROUBLE,
    CPU_PLAN_NO_CPUS,          /* the description of the machine has no usable CPU */
    CPU_PLAN_NO_DEVICE,        /* a local rank has no device with that index */
    CPU_PLAN_DEVICE_NODE_LOST, /* the NUMA node of the device of a rank is not known */
    CPU_PLAN_NODE_EMPTY,    /* the NUMA node of the device has no CPU that this process may use */
    CPU_PLAN_TOO_FEW_CORES, /* exclusive: fewer physical cores than devices or workers */
};

/* Why there is no plan. cpu_plan_explain tells it to the user. */
struct cpu_plan_problem {
    enum cpu_plan_trouble trouble;
    size_t local_rank;
    int node;         /* a NUMA node, or MACHINE_NODE_UNKNOWN for the whole machine */
    size_t available; /* how many devices or physical cores exist */
    size_t wanted;    /* how many workers or devices need one each */
};

/* Makes a plan. `binding` is one of these modes:
 *   none          The plan is empty.
 *   node          All CPUs of the device's NUMA node. Without devices, rank i gets NUMA node
 *                 i mod nodes.
 *   socket        All CPUs of all NUMA nodes of the device's socket. Nodes without usable CPUs
 *                 (memory only) are ignored, where PyTorch raises an exception. Without devices,
 *                 rank i gets socket i mod sockets.
 *   exclusive     The physical cores of the NUMA node are divided among the devices on it. When
 *                 the division leaves a remainder, the first devices get one core more. Without
 *                 devices, all cores of the machine (node by node) are divided among all workers.
 *   core-complex  One group of CPUs that share a last-level cache. Groups with more usable CPUs
 *                 come first, then groups with lower numbers; the device gets the group of its
 *                 position on its node, mod groups. Without devices, all groups of the machine
 *                 count, and the local rank is the position.
 * FAILURE_INVALID when the machine cannot satisfy the mode: `out_problem` (NULL allowed) then says
 * why, and `out_plan` is untouched. The caller clears the plan. */
__attribute__((warn_unused_result)) enum failure_code cpu_plan_make(
    const struct machine_description *machine, enum launch_numa_binding binding,
    size_t worker_count, struct cpu_plan *out_plan, struct cpu_plan_problem *out_problem);
void cpu_plan_clear(struct cpu_plan *plan);

/* Appends the problem as a sentence without a full stop. */
void cpu_plan_explain(const struct cpu_plan_problem *problem, struct text *text);

#endif
