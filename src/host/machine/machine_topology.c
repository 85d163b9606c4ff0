/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/machine/machine_topology.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "host/loop/whole_file.h"

/* The longest list names every second CPU up to the ceiling. */
#define LIST_FILE_CEILING ((size_t)CPU_SET_CEILING * 5)
#define CACHES_MAXIMUM 16
#define KIND_FILE_CEILING ((size_t)64)

_Static_assert(
    MACHINE_MAXIMUM_NODES <= CPU_SET_CEILING, "lists of nodes are read like those of CPUs");

enum failure_code machine_topology_allowed_cpus(
    struct cpu_set_bits *out_allowed, struct failure *failure) {
    /* The kernel's mask is an array of unsigned long. Reading it bit by bit is portable. */
    unsigned long mask[CPU_SET_CEILING / (8 * sizeof(unsigned long))] = {0};
    const int word_bits = 8 * (int)sizeof *mask;
    if (sched_getaffinity(0, sizeof mask, (cpu_set_t *)mask) != 0) {
        return failure_set_system(failure, errno, "cannot read this process' CPU affinity");
    }
    struct cpu_set_bits allowed = {0};
    for (int cpu = 0; cpu < CPU_SET_CEILING; cpu++) {
        if ((mask[cpu / word_bits] >> (cpu % word_bits) & 1) != 0) {
            cpu_set_add(&allowed, cpu);
        }
    }
    *out_allowed = allowed;
    return FAILURE_NONE;
}

/* Reads a list of numbers. Frees the path. */
static enum failure_code read_list(
    char *path_taken, struct cpu_set_bits *out_set, struct failure *failure) {
    struct bytes bytes = {0};
    enum failure_code code = whole_file_read(path_taken, true, LIST_FILE_CEILING, &bytes, failure);
    if (code == FAILURE_NONE && cpu_set_parse(bytes_slice(&bytes), out_set) != FAILURE_NONE) {
        code = failure_set(failure, FAILURE_MALFORMED, "%s holds no list of numbers", path_taken);
    }
    bytes_clear(&bytes);
    free(path_taken);
    return code;
}

/* Reads an integer. Frees the path. */
static enum failure_code read_integer(char *path_taken, int *out_value, struct failure *failure) {
    enum failure_code code = whole_file_read_integer(path_taken, out_value, failure);
    free(path_taken);
    return code;
}

/* Whether a cache holds data. Frees the path. */
static bool is_data_cache(char *path_taken) {
    struct bytes bytes = {0};
    bool holds_data = false;
    if (whole_file_read(path_taken, true, KIND_FILE_CEILING, &bytes, NULL) == FAILURE_NONE) {
        holds_data = slice_starts_with(bytes_slice(&bytes), slice_from_string("Unified")) ||
                     slice_starts_with(bytes_slice(&bytes), slice_from_string("Data"));
    }
    bytes_clear(&bytes);
    free(path_taken);
    return holds_data;
}

/* The lowest CPU that shares the data cache of the highest level; `fallback` where the kernel shows
 * no caches, as in many virtual machines. */
static enum failure_code read_cache_group(
    const char *cpu_path, int fallback, int *out_group, struct failure *failure) {
    int highest = -1;
    int group = fallback;
    for (int i = 0; i < CACHES_MAXIMUM; i++) {
        int level;
        enum failure_code code =
            read_integer(text_format("%s/cache/index%d/level", cpu_path, i), &level, failure);
        if (code == FAILURE_MISSING) {
            break;
        }
        if (code != FAILURE_NONE) {
            return code;
        }
        if (level <= highest || !is_data_cache(text_format("%s/cache/index%d/type", cpu_path, i))) {
            continue;
        }
        struct cpu_set_bits shared;
        code = read_list(
            text_format("%s/cache/index%d/shared_cpu_list", cpu_path, i), &shared, failure);
        if (code != FAILURE_NONE) {
            return code;
        }
        highest = level;
        group = cpu_set_next(&shared, 0) >= 0 ? cpu_set_next(&shared, 0) : fallback;
    }
    *out_group = group;
    return FAILURE_NONE;
}

/* Reads everything but the node, which is not in the CPU's directory. */
static enum failure_code read_cpu(
    const char *sys_root, int number, struct machine_cpu *out_cpu, struct failure *failure) {
    char *path = text_format("%s/devices/system/cpu/cpu%d", sys_root, number);
    struct machine_cpu cpu = {.cpu = number, .core = number};
    struct cpu_set_bits siblings;
    enum failure_code code =
        read_integer(text_format("%s/topology/physical_package_id", path), &cpu.package, failure);
    if (code == FAILURE_NONE) {
        code = read_list(text_format("%s/topology/thread_siblings_list", path), &siblings, failure);
    }
    if (code == FAILURE_NONE) {
        int lowest = cpu_set_next(&siblings, 0);
        cpu.core = lowest >= 0 ? lowest : number;
        code = read_cache_group(path, cpu.core, &cpu.cache_group, failure);
    }
    free(path);
    if (code == FAILURE_NONE) {
        *out_cpu = cpu;
    }
    return code;
}

static enum failure_code read_cpus(const char *sys_root, const struct cpu_set_bits *allowed,
    struct machine_description *machine, struct failure *failure) {
    machine->cpus = memory_allocate(cpu_set_count(allowed) * sizeof *machine->cpus);
    for (int cpu = cpu_set_next(allowed, 0); cpu >= 0; cpu = cpu_set_next(allowed, cpu + 1)) {
        enum failure_code code =
            read_cpu(sys_root, cpu, &machine->cpus[machine->cpu_count], failure);
        if (code != FAILURE_NONE) {
            return code;
        }
        machine->cpu_count++;
    }
    return FAILURE_NONE;
}

/* A possible node may be absent (it may be plugged in later), and a present node may have no
 * CPU. */
static enum failure_code read_nodes(
    const char *sys_root, struct machine_description *machine, struct failure *failure) {
    struct cpu_set_bits nodes = {0};
    enum failure_code code =
        read_list(text_format("%s/devices/system/node/possible", sys_root), &nodes, failure);
    if (code == FAILURE_MISSING) {
        return FAILURE_NONE; /* a kernel without NUMA: all CPUs are on node 0 */
    }
    for (int node = cpu_set_next(&nodes, 0); code == FAILURE_NONE && node >= 0;
         node = cpu_set_next(&nodes, node + 1)) {
        struct cpu_set_bits members = {0};
        code = read_list(text_format("%s/devices/system/node/node%d/cpulist", sys_root, node),
            &members, failure);
        code = code == FAILURE_MISSING ? FAILURE_NONE : code;
        for (size_t i = 0; i < machine->cpu_count; i++) {
            if (cpu_set_has(&members, machine->cpus[i].cpu)) {
                machine->cpus[i].node = node;
            }
        }
    }
    return code;
}

static enum failure_code read_devices(const char *sys_root, const struct text_list *addresses,
    struct machine_description *machine, struct failure *failure) {
    if (addresses->count > MACHINE_MAXIMUM_DEVICES) {
        return failure_set(failure, FAILURE_LIMIT, "%zu devices, more than the %d possible",
            addresses->count, MACHINE_MAXIMUM_DEVICES);
    }
    machine->device_nodes = memory_allocate(addresses->count * sizeof *machine->device_nodes);
    for (size_t i = 0; i < addresses->count; i++) {
        int node = MACHINE_NODE_UNKNOWN;
        if (addresses->items[i][0] != '\0') {
            enum failure_code code = read_integer(
                text_format("%s/bus/pci/devices/%s/numa_node", sys_root, addresses->items[i]),
                &node, failure);
            if (code != FAILURE_NONE) {
                return code;
            }
            node = node < 0 ? 0 : node; /* the kernel writes -1 when there is only one node */
        }
        machine->device_nodes[machine->device_count++] = node;
    }
    return FAILURE_NONE;
}

enum failure_code machine_topology_read(const char *sys_root, const struct cpu_set_bits *allowed,
    const struct text_list *pci_addresses, struct machine_description *out_machine,
    struct failure *failure) {
    struct machine_description machine = {0};
    enum failure_code code = read_cpus(sys_root, allowed, &machine, failure);
    if (code == FAILURE_NONE) {
        code = read_nodes(sys_root, &machine, failure);
    }
    if (code == FAILURE_NONE) {
        code = read_devices(sys_root, pci_addresses, &machine, failure);
    }
    if (code != FAILURE_NONE) {
        machine_description_clear(&machine);
        return code;
    }
    *out_machine = machine;
    return FAILURE_NONE;
}
