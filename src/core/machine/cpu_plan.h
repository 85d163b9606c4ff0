/* SPDX-License-Identifier: BSD-3-Clause */
/* Plans to which CPUs each worker of this node is bound (--numa-binding). It plans from a
 * description of the machine. The host floor reads the machine and binds the workers.
 *
 * With accelerators it follows torch/numa/binding.py: the device index is the local rank, and the
 * worker is bound near its device. On a machine without accelerators PyTorch refuses; Muster
 * spreads the workers over the CPUs instead. */
#ifndef MUSTER_CORE_MACHINE_CPU_PLAN_H
#define MUSTER_CORE_MACHINE_CPU_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/failure.h"
#include "base/text.h"
#include "core/launch/launch_config.h"

/* Reads the value of CUDA_VISIBLE_DEVICES, or of the same variables for AMD: which physical devices
 * a process sees, and in which order. Matches torch/cuda/__init__.py (_parse_visible_devices,
 * _transform_uuid_to_ordinals, _device_count_nvml). */

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

/* What a plan needs to know of this machine: the CPUs that this process may use, the place of each
 * CPU in the machine, and the NUMA node of each accelerator. These are plain values:
 * host/machine fills them in, and core/cpu_plan reads them. */

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

/* A set of logical CPUs, and the kernel's text form of it ("0-3,8"). It is a value of fixed size,
 * so a hostile or broken list of CPUs cannot make it grow. It knows nothing of the machine. */

/* The limit of Linux (CONFIG_NR_CPUS). */
#define CPU_SET_CEILING 8192
#define CPU_SET_WORDS (CPU_SET_CEILING / 64)

/* Bit i % 64 of words[i / 64] is CPU i. On 64-bit machines this is the form of sched_setaffinity. A
 * zeroed struct is the empty set. */
struct cpu_set_bits {
    uint64_t words[CPU_SET_WORDS];
};

/* `cpu` must be in 0..CPU_SET_CEILING-1. */
void cpu_set_add(struct cpu_set_bits *set, int cpu);
/* False for every number that is not in 0..CPU_SET_CEILING-1. */
bool cpu_set_has(const struct cpu_set_bits *set, int cpu);
size_t cpu_set_count(const struct cpu_set_bits *set);
/* The lowest member that is `from` or higher, -1 when there is none: `for (int cpu =
 * cpu_set_next(set, 0); cpu >= 0; cpu = cpu_set_next(set, cpu + 1))`. */
int cpu_set_next(const struct cpu_set_bits *set, int from);

/* Reads a list as the kernel writes it: numbers and ranges `a-b`, separated by commas. Blanks and a
 * newline around an item are allowed. Empty items are ignored, so an empty list is the empty set.
 * Matches torch/numa/binding.py _get_set_of_int_from_ranges_str. FAILURE_MALFORMED for other text
 * and for a range whose end is below its start. FAILURE_LIMIT for a CPU beyond the ceiling. */
__attribute__((warn_unused_result)) enum failure_code cpu_set_parse(
    struct slice list, struct cpu_set_bits *out_set);

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
