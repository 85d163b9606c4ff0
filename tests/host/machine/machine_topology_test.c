/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "core/machine/cpu_plan.h"
#include "host/machine/machine.h"
#include "temporary_tree.h"

__attribute__((format(printf, 3, 4))) static void write_file(
    const struct temporary_tree *tree, char *name_taken, const char *format, ...) {
    char content[256];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(content, sizeof content, format, arguments);
    va_end(arguments);
    temporary_tree_write(tree, name_taken, content);
    free(name_taken);
}

static void write_cache(const struct temporary_tree *tree, int cpu, int index, int level,
    const char *kind, const char *shared) {
    write_file(tree, text_format("devices/system/cpu/cpu%d/cache/index%d/level", cpu, index),
        "%d\n", level);
    write_file(
        tree, text_format("devices/system/cpu/cpu%d/cache/index%d/type", cpu, index), "%s\n", kind);
    write_file(tree,
        text_format("devices/system/cpu/cpu%d/cache/index%d/shared_cpu_list", cpu, index), "%s\n",
        shared);
}

/* One CPU as x86 shows it: data, instruction and second-level cache of its core, third level of
 * its neighbours. */
static void write_cpu(const struct temporary_tree *tree, int cpu, int package, const char *siblings,
    const char *cache_neighbours) {
    write_file(tree, text_format("devices/system/cpu/cpu%d/topology/physical_package_id", cpu),
        "%d\n", package);
    write_file(tree, text_format("devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu),
        "%s\n", siblings);
    write_cache(tree, cpu, 0, 1, "Data", siblings);
    write_cache(tree, cpu, 1, 1, "Instruction", siblings);
    write_cache(tree, cpu, 2, 2, "Unified", siblings);
    if (cache_neighbours != NULL) {
        write_cache(tree, cpu, 3, 3, "Unified", cache_neighbours);
    }
}

static void write_node(const struct temporary_tree *tree, int node, const char *list) {
    write_file(tree, text_format("devices/system/node/node%d/cpulist", node), "%s\n", list);
}

static void write_device(const struct temporary_tree *tree, const char *address, int node) {
    write_file(tree, text_format("bus/pci/devices/%s/numa_node", address), "%d\n", node);
}

static struct cpu_set_bits cpus(const char *list) {
    struct cpu_set_bits set;
    assert_int_equal(cpu_set_parse(slice_from_string(list), &set), FAILURE_NONE);
    return set;
}

static enum failure_code describe(const struct temporary_tree *tree, const char *allowed,
    const struct text_list *addresses, struct machine_description *machine,
    struct failure *failure) {
    static const struct text_list none = {0};
    struct cpu_set_bits set = cpus(allowed);
    return machine_topology_read(
        tree->root, &set, addresses != NULL ? addresses : &none, machine, failure);
}

static void assert_cpu(
    const struct machine_cpu *cpu, int number, int package, int core, int node, int cache_group) {
    assert_int_equal(cpu->cpu, number);
    assert_int_equal(cpu->package, package);
    assert_int_equal(cpu->core, core);
    assert_int_equal(cpu->node, node);
    assert_int_equal(cpu->cache_group, cache_group);
}

/* 2 sockets x 2 nodes x 2 cores x 2 threads: thread siblings are 8 apart. */
static void write_two_sockets(const struct temporary_tree *tree) {
    temporary_tree_write(tree, "devices/system/node/possible", "0-3\n");
    for (int cpu = 0; cpu < 16; cpu++) {
        int core = cpu % 8;
        int node = core / 2;
        char siblings[32];
        char neighbours[32];
        (void)snprintf(siblings, sizeof siblings, "%d,%d", core, core + 8);
        (void)snprintf(neighbours, sizeof neighbours, "%d-%d,%d-%d", 2 * node, 2 * node + 1,
            2 * node + 8, 2 * node + 9);
        write_cpu(tree, cpu, node / 2, siblings, neighbours);
        write_node(tree, node, neighbours);
    }
}

TREE_TEST(two_sockets_of_two_nodes_with_two_threads) {
    write_two_sockets(fixture);
    write_device(fixture, "0000:3b:00.0", 1);
    write_device(fixture, "0001:dc:00.0", 3);
    write_device(fixture, "0000:02:00.0", -1);
    struct text_list addresses = {0};
    text_list_add(&addresses, "0001:dc:00.0");
    text_list_add(&addresses, "0000:3b:00.0");
    text_list_add(&addresses, "0000:02:00.0");
    text_list_add(&addresses, "");
    struct machine_description machine;
    assert_int_equal(describe(fixture, "0-15", &addresses, &machine, NULL), FAILURE_NONE);
    assert_int_equal(machine.cpu_count, 16);
    assert_cpu(&machine.cpus[0], 0, 0, 0, 0, 0);
    assert_cpu(&machine.cpus[5], 5, 1, 5, 2, 4);
    assert_cpu(&machine.cpus[15], 15, 1, 7, 3, 6);
    assert_int_equal(machine.device_count, 4);
    assert_int_equal(machine.device_nodes[0], 3);
    assert_int_equal(machine.device_nodes[1], 1);
    assert_int_equal(machine.device_nodes[2], 0);
    assert_int_equal(machine.device_nodes[3], MACHINE_NODE_UNKNOWN);

    struct cpu_plan plan;
    assert_int_equal(cpu_plan_make(&machine, LAUNCH_NUMA_SOCKET, 2, &plan, NULL), FAILURE_NONE);
    struct cpu_set_bits expected = cpus("4-7,12-15");
    assert_memory_equal(&plan.sets[0], &expected, sizeof expected);
    expected = cpus("0-3,8-11");
    assert_memory_equal(&plan.sets[1], &expected, sizeof expected);
    cpu_plan_clear(&plan);
    machine_description_clear(&machine);
    text_list_clear(&addresses);
}

TREE_TEST(only_the_affinity_mask_is_described) {
    write_two_sockets(fixture);
    struct machine_description machine;
    assert_int_equal(describe(fixture, "3,9,14", NULL, &machine, NULL), FAILURE_NONE);
    assert_int_equal(machine.cpu_count, 3);
    assert_cpu(&machine.cpus[0], 3, 0, 3, 1, 2);
    assert_cpu(&machine.cpus[1], 9, 0, 1, 0, 0); /* core and group are named by CPUs not allowed */
    assert_cpu(&machine.cpus[2], 14, 1, 6, 3, 6);
    machine_description_clear(&machine);
}

TREE_TEST(memory_only_and_absent_nodes_are_passed_over) {
    temporary_tree_write(fixture, "devices/system/node/possible", "0-2,7\n");
    write_cpu(fixture, 0, 0, "0", "0-1");
    write_cpu(fixture, 1, 0, "1", "0-1");
    write_node(fixture, 0, "0");
    write_node(fixture, 1, ""); /* memory only; 2 is absent */
    write_node(fixture, 7, "1");
    struct machine_description machine;
    assert_int_equal(describe(fixture, "0-1", NULL, &machine, NULL), FAILURE_NONE);
    assert_cpu(&machine.cpus[0], 0, 0, 0, 0, 0);
    assert_cpu(&machine.cpus[1], 1, 0, 1, 7, 0);
    machine_description_clear(&machine);
}

TREE_TEST(core_complexes_come_from_the_last_data_cache) {
    for (int cpu = 0; cpu < 8; cpu++) {
        char self[8];
        (void)snprintf(self, sizeof self, "%d", cpu);
        write_cpu(fixture, cpu, 0, self, cpu < 4 ? "0-3" : "4-7");
        write_cache(fixture, cpu, 4, 4, "Instruction", "0-7");
    }
    struct machine_description machine;
    assert_int_equal(describe(fixture, "0-7", NULL, &machine, NULL), FAILURE_NONE);
    for (int cpu = 0; cpu < 8; cpu++) {
        assert_cpu(&machine.cpus[cpu], cpu, 0, cpu, 0, cpu < 4 ? 0 : 4);
    }
    machine_description_clear(&machine);
}

TREE_TEST(machine_without_numa_and_cache_files_has_one_node) {
    for (int cpu = 2; cpu < 6; cpu += 3) { /* CPUs 2 and 5: holes before and between */
        write_file(fixture,
            text_format("devices/system/cpu/cpu%d/topology/physical_package_id", cpu), "-1\n");
        write_file(fixture,
            text_format("devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu), "%d\n",
            cpu);
    }
    struct machine_description machine;
    assert_int_equal(describe(fixture, "2,5", NULL, &machine, NULL), FAILURE_NONE);
    assert_cpu(&machine.cpus[0], 2, -1, 2, 0, 2);
    assert_cpu(&machine.cpus[1], 5, -1, 5, 0, 5);
    machine_description_clear(&machine);
}

TREE_TEST(lacking_and_broken_files_are_named) {
    write_two_sockets(fixture);
    struct machine_description machine = {.cpu_count = 77};
    struct failure failure;
    assert_int_equal(describe(fixture, "16", NULL, &machine, &failure), FAILURE_MISSING);
    assert_non_null(strstr(failure.message, "cpu16/topology/physical_package_id"));
    struct text_list addresses = {0};
    text_list_add(&addresses, "0000:3b:00.0");
    assert_int_equal(describe(fixture, "0", &addresses, &machine, &failure), FAILURE_MISSING);
    assert_non_null(strstr(failure.message, "0000:3b:00.0/numa_node"));
    text_list_clear(&addresses);
    write_node(fixture, 2, "5-4");
    assert_int_equal(describe(fixture, "0", NULL, &machine, &failure), FAILURE_MALFORMED);
    assert_non_null(strstr(failure.message, "node2/cpulist"));
    temporary_tree_write(fixture, "devices/system/cpu/cpu0/cache/index3/level", "three");
    assert_int_equal(describe(fixture, "0", NULL, &machine, &failure), FAILURE_MALFORMED);
    assert_non_null(strstr(failure.message, "cpu0/cache/index3/level"));
    assert_int_equal(machine.cpu_count, 77);
}

TEST(this_machine_can_be_described) {
    struct cpu_set_bits allowed;
    assert_int_equal(machine_topology_allowed_cpus(&allowed, NULL), FAILURE_NONE);
    assert_true(cpu_set_count(&allowed) > 0);
    static const struct text_list none = {0};
    struct machine_description machine;
    struct failure failure;
    enum failure_code code =
        machine_topology_read(MACHINE_TOPOLOGY_SYS_ROOT, &allowed, &none, &machine, &failure);
    if (code == FAILURE_MISSING) { /* a sandbox may hide /sys; then it must say what it misses */
        assert_non_null(strstr(failure.message, MACHINE_TOPOLOGY_SYS_ROOT));
        return;
    }
    assert_int_equal(code, FAILURE_NONE);
    assert_int_equal(machine.cpu_count, cpu_set_count(&allowed));
    for (size_t i = 0; i < machine.cpu_count; i++) {
        assert_true(cpu_set_has(&allowed, machine.cpus[i].cpu));
        assert_true(machine.cpus[i].core <= machine.cpus[i].cpu);
        assert_true(machine.cpus[i].cache_group <= machine.cpus[i].cpu);
    }
    machine_description_clear(&machine);
}
