/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "base/memory.h"
#include "core/machine/cpu_plan.h"

#define CPUS_MAXIMUM 64

/* A machine whose CPU i is thread (i / cores) of core (i % cores), as Linux numbers the CPUs of
 * x86. */
struct sample {
    struct machine_cpu cpus[CPUS_MAXIMUM];
    int device_nodes[8];
    struct machine_description machine;
};

struct shape {
    int packages;
    int nodes_per_package;
    int cores_per_node;
    int threads;
    int cores_per_cache;
};

static void build_machine(struct sample *sample, struct shape shape) {
    int cores = shape.packages * shape.nodes_per_package * shape.cores_per_node;
    for (int i = 0; i < cores * shape.threads; i++) {
        int core = i % cores;
        int node = core / shape.cores_per_node;
        sample->cpus[i] = (struct machine_cpu){.cpu = i,
            .core = core,
            .node = node,
            .package = node / shape.nodes_per_package,
            .cache_group = core - core % shape.cores_per_cache};
    }
    sample->machine = (struct machine_description){.cpus = sample->cpus,
        .cpu_count = (size_t)(cores * shape.threads),
        .device_nodes = sample->device_nodes};
}

/* Leaves only the CPUs of a list, as an affinity mask does. */
static void allow_only(struct sample *sample, const char *list) {
    struct cpu_set_bits allowed;
    assert_int_equal(cpu_set_parse(slice_from_string(list), &allowed), FAILURE_NONE);
    size_t kept = 0;
    for (size_t i = 0; i < sample->machine.cpu_count; i++) {
        if (cpu_set_has(&allowed, sample->cpus[i].cpu)) {
            sample->cpus[kept++] = sample->cpus[i];
        }
    }
    sample->machine.cpu_count = kept;
}

static void put_devices_on(struct sample *sample, const int *nodes, size_t count) {
    for (size_t i = 0; i < count; i++) {
        sample->device_nodes[i] = nodes[i];
    }
    sample->machine.device_count = count;
}

static void assert_plan(const struct sample *sample, enum launch_numa_binding binding,
    const char *const *lists, size_t count) {
    struct cpu_plan plan;
    assert_int_equal(cpu_plan_make(&sample->machine, binding, count, &plan, NULL), FAILURE_NONE);
    assert_int_equal(plan.count, count);
    for (size_t rank = 0; rank < count; rank++) {
        struct cpu_set_bits expected;
        assert_int_equal(cpu_set_parse(slice_from_string(lists[rank]), &expected), FAILURE_NONE);
        assert_memory_equal(&plan.sets[rank], &expected, sizeof expected);
    }
    cpu_plan_clear(&plan);
}

#define ASSERT_PLAN(sample, binding, ...)                                                          \
    do {                                                                                           \
        const char *const lists[] = {__VA_ARGS__};                                                 \
        assert_plan(sample, binding, lists, sizeof lists / sizeof *lists);                         \
    } while (0)

static void assert_no_plan(const struct sample *sample, enum launch_numa_binding binding,
    size_t worker_count, const char *sentence) {
    struct cpu_plan plan = {.count = 77};
    struct cpu_plan_problem problem;
    assert_int_equal(
        cpu_plan_make(&sample->machine, binding, worker_count, &plan, &problem), FAILURE_INVALID);
    assert_int_equal(
        cpu_plan_make(&sample->machine, binding, worker_count, &plan, NULL), FAILURE_INVALID);
    assert_int_equal(plan.count, 77);
    CLEARED_BY(text_clear) struct text text = {0};
    cpu_plan_explain(&problem, &text);
    assert_string_equal(text_string(&text), sentence);
}

/* 2 sockets x 2 nodes x 4 cores x 2 threads: 32 CPUs; node n has CPUs 4n..4n+3 and 16 more up. */
static const struct shape two_sockets = {
    .packages = 2, .nodes_per_package = 2, .cores_per_node = 4, .threads = 2, .cores_per_cache = 4};

TEST(no_binding_binds_nobody) {
    struct sample sample = {0};
    struct cpu_plan plan;
    assert_int_equal(
        cpu_plan_make(&sample.machine, LAUNCH_NUMA_NONE, 4, &plan, NULL), FAILURE_NONE);
    assert_int_equal(plan.count, 0);
    cpu_plan_clear(&plan);
}

TEST(socket_mode_takes_all_nodes_of_the_devices_socket) {
    struct sample sample;
    build_machine(&sample, two_sockets);
    put_devices_on(&sample, (const int[]){1, 2}, 2);
    ASSERT_PLAN(&sample, LAUNCH_NUMA_SOCKET, "0-7,16-23", "8-15,24-31");
}

TEST(exclusive_keeps_a_cores_threads_together_when_some_are_not_allowed) {
    struct sample sample;
    build_machine(&sample, two_sockets);
    allow_only(&sample, "1-3,16,19");
    put_devices_on(&sample, (const int[]){0, 0}, 2);
    /* cores 0 (only its thread 16), 1, 2, 3 (with 19) */
    ASSERT_PLAN(&sample, LAUNCH_NUMA_EXCLUSIVE, "1,16", "2-3,19");
}

TEST(core_complexes_with_more_usable_cpus_come_first) {
    struct sample sample;
    build_machine(&sample, (struct shape){.packages = 1,
                               .nodes_per_package = 1,
                               .cores_per_node = 6,
                               .threads = 1,
                               .cores_per_cache = 2});
    allow_only(&sample, "1-5");
    put_devices_on(&sample, (const int[]){0, 0, 0}, 3);
    ASSERT_PLAN(&sample, LAUNCH_NUMA_CORE_COMPLEX, "2-3", "4-5", "1");
}

TEST(without_devices_ranks_go_round_the_nodes_and_sockets) {
    struct sample sample;
    build_machine(&sample, two_sockets);
    ASSERT_PLAN(&sample, LAUNCH_NUMA_NODE, "0-3,16-19", "4-7,20-23", "8-11,24-27", "12-15,28-31",
        "0-3,16-19");
    ASSERT_PLAN(&sample, LAUNCH_NUMA_SOCKET, "0-7,16-23", "8-15,24-31", "0-7,16-23");
}

TEST(without_devices_exclusive_divides_the_whole_machine) {
    struct sample sample;
    build_machine(&sample, two_sockets);
    ASSERT_PLAN(&sample, LAUNCH_NUMA_EXCLUSIVE, "0-5,16-21", "6-10,22-26", "11-15,27-31");
}

TEST(without_devices_exclusive_shares_stay_on_a_node_where_numbers_alternate) {
    struct sample sample;
    build_machine(&sample, (struct shape){.packages = 1,
                               .nodes_per_package = 1,
                               .cores_per_node = 8,
                               .threads = 1,
                               .cores_per_cache = 8});
    for (int i = 0; i < 8; i++) {
        sample.cpus[i].node = i % 2;
    }
    ASSERT_PLAN(&sample, LAUNCH_NUMA_EXCLUSIVE, "0,2,4,6", "1,3,5,7");
}

TEST(device_of_unknown_place_is_on_the_only_node) {
    struct sample sample;
    build_machine(&sample, (struct shape){.packages = 1,
                               .nodes_per_package = 1,
                               .cores_per_node = 2,
                               .threads = 1,
                               .cores_per_cache = 2});
    put_devices_on(&sample, (const int[]){MACHINE_NODE_UNKNOWN}, 1);
    ASSERT_PLAN(&sample, LAUNCH_NUMA_NODE, "0-1");
    build_machine(&sample, two_sockets);
    put_devices_on(&sample, (const int[]){MACHINE_NODE_UNKNOWN}, 1);
    assert_no_plan(&sample, LAUNCH_NUMA_NODE, 1, "the NUMA node of device 0 cannot be found out");
}

TEST(every_refusal_says_why) {
    struct sample sample;
    build_machine(&sample, two_sockets);
    put_devices_on(&sample, (const int[]){0, 0}, 2);
    assert_no_plan(
        &sample, LAUNCH_NUMA_NODE, 3, "local rank 2 has no device to be near to: devices here: 2");
    allow_only(&sample, "1,17,8");
    assert_no_plan(&sample, LAUNCH_NUMA_EXCLUSIVE, 2,
        "1 physical cores of NUMA node 0 cannot be divided among its 2 devices");
    put_devices_on(&sample, (const int[]){3}, 1);
    assert_no_plan(&sample, LAUNCH_NUMA_SOCKET, 1,
        "device 0 is on NUMA node 3, which has no CPU that may be used here");
    put_devices_on(&sample, NULL, 0);
    assert_no_plan(
        &sample, LAUNCH_NUMA_EXCLUSIVE, 3, "2 physical cores cannot be divided among 3 workers");
    sample.machine.cpu_count = 0;
    assert_no_plan(&sample, LAUNCH_NUMA_NODE, 1, "no CPU of this machine may be used");
}

/* Cpu set. */

static struct cpu_set_bits parsed(const char *list) {
    struct cpu_set_bits set;
    assert_int_equal(cpu_set_parse(slice_from_string(list), &set), FAILURE_NONE);
    return set;
}

TEST(a_list_may_be_spelled_in_many_ways) {
    static const struct {
        const char *list;
        const char *same;
        size_t count;
    } cases[] = {
        {"0-3,8\n", "0-3,8", 5},
        {"8, 0-3", "0-3,8", 5},
        {"3,2,1,0", "0-3", 4},
        {"0-2,1-5", "0-5", 6},
        {"7-7", "7", 1},
        {"", "", 0},
        {"\n", "", 0},
        {",,1,", "1", 1},
        {"0-8191", "0-8191", 8192},
        {"63-64,127,8191", "63-64,127,8191", 4},
        {"007", "7", 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct cpu_set_bits set = parsed(cases[i].list);
        struct cpu_set_bits same = parsed(cases[i].same);
        assert_memory_equal(&set, &same, sizeof set);
        assert_int_equal(cpu_set_count(&set), cases[i].count);
    }
}

TEST(other_text_is_refused_and_changes_nothing) {
    static const struct {
        const char *list;
        enum failure_code code;
    } cases[] = {
        {"x", FAILURE_MALFORMED},
        {"-1", FAILURE_MALFORMED},
        {"1-", FAILURE_MALFORMED},
        {"3-1", FAILURE_MALFORMED},
        {"1 2", FAILURE_MALFORMED},
        {"0-16:2/4", FAILURE_MALFORMED},
        {"1-2-3", FAILURE_MALFORMED},
        {"8192", FAILURE_LIMIT},
        {"0-8192", FAILURE_LIMIT},
        {"99999999999999999999", FAILURE_LIMIT},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct cpu_set_bits set = parsed("5");
        assert_int_equal(cpu_set_parse(slice_from_string(cases[i].list), &set), cases[i].code);
        assert_int_equal(cpu_set_count(&set), 1);
        assert_true(cpu_set_has(&set, 5));
    }
}

TEST(members_are_walked_in_order) {
    struct cpu_set_bits set = parsed("0,63-65,640,8191");
    static const int expected[] = {0, 63, 64, 65, 640, 8191};
    size_t seen = 0;
    for (int cpu = cpu_set_next(&set, 0); cpu >= 0; cpu = cpu_set_next(&set, cpu + 1)) {
        assert_true(seen < sizeof expected / sizeof *expected);
        assert_int_equal(cpu, expected[seen++]);
    }
    assert_int_equal(seen, 6);
    assert_int_equal(cpu_set_next(&set, 8192), -1);
}

TEST(numbers_outside_the_ceiling_are_no_members) {
    struct cpu_set_bits set = parsed("0-8191");
    assert_false(cpu_set_has(&set, -1));
    assert_false(cpu_set_has(&set, 8192));
}

/* Machine description. */

TEST(cleared_machine_is_empty_and_can_be_cleared_again) {
    CLEARED_BY(machine_description_clear)
    struct machine_description machine = {
        .cpus = memory_allocate(2 * sizeof(struct machine_cpu)),
        .cpu_count = 2,
        .device_nodes = memory_allocate(sizeof(int)),
        .device_count = 1,
    };
    machine_description_clear(&machine);
    assert_null(machine.cpus);
    assert_int_equal(machine.cpu_count, 0);
    assert_null(machine.device_nodes);
    assert_int_equal(machine.device_count, 0);
}
