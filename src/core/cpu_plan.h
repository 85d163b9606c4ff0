/* SPDX-License-Identifier: BSD-3-Clause */
/* Which CPUs each worker of this node is bound to (--numa-binding). Decides from a description of
 * the machine; reading the machine and binding are the host's.
 *
 * With accelerators it follows torch/numa/binding.py: device index = local rank, and the worker is
 * bound near its device. Where there is none, PyTorch refuses; here the workers are spread over the
 * CPU topology instead. */
#ifndef MUSTER_CORE_CPU_PLAN_H
#define MUSTER_CORE_CPU_PLAN_H

#include <stddef.h>

#include "base/failure.h"
#include "base/text.h"
#include "core/cpu_set.h"
#include "core/launch_config.h"
#include "core/machine_description.h"

/* A CPU set per local rank; `count` is 0 when nothing is to be bound. */
struct cpu_plan {
    struct cpu_set_bits *sets;
    size_t count;
};

enum cpu_plan_trouble {
    CPU_PLAN_NO_TROUBLE,
    CPU_PLAN_NO_CPUS,          /* the machine's description has no usable CPU */
    CPU_PLAN_NO_DEVICE,        /* a local rank without a device of that index */
    CPU_PLAN_DEVICE_NODE_LOST, /* the NUMA node of a rank's device is not known */
    CPU_PLAN_NODE_EMPTY,       /* the device's NUMA node has no CPU this process may use */
    CPU_PLAN_TOO_FEW_CORES,    /* exclusive: fewer physical cores than devices or workers */
};

/* Why there is no plan, for the user's eyes. */
struct cpu_plan_problem {
    enum cpu_plan_trouble trouble;
    size_t local_rank;
    int node;         /* NUMA node, or MACHINE_NODE_UNKNOWN for the whole machine */
    size_t available; /* devices or physical cores there are */
    size_t wanted;    /* workers or devices that need one each */
};

/* Modes (`binding`):
 *   none          an empty plan.
 *   node          all CPUs of the device's NUMA node. No device: rank i on node i mod nodes.
 *   socket        all CPUs of all NUMA nodes of the device's socket; nodes without usable CPUs
 *                 (memory only) are passed over, where PyTorch raises. No device: rank i on socket
 *                 i mod sockets.
 *   exclusive     the node's physical cores divided evenly among the devices on it, the first ones
 *                 getting one more when it does not come out even. No device: the same with all
 *                 cores of the machine (node by node) and all workers.
 *   core-complex  one group of CPUs that share a last-level cache; groups with more usable CPUs
 *                 first, then lower ones; the device's position on its node, mod groups. No device:
 *                 the same with all groups of the machine and the local rank.
 * FAILURE_INVALID when the machine cannot satisfy that; then `out_problem` (NULL allowed) says why
 * and `out_plan` is untouched. The caller clears the plan. */
__attribute__((warn_unused_result)) enum failure_code cpu_plan_make(
    const struct machine_description *machine, enum launch_numa_binding binding,
    size_t worker_count, struct cpu_plan *out_plan, struct cpu_plan_problem *out_problem);
void cpu_plan_clear(struct cpu_plan *plan);

/* Appends the problem as a sentence without a full stop. */
void cpu_plan_explain(const struct cpu_plan_problem *problem, struct text *text);

#endif
