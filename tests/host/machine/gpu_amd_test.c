/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "host/machine/gpu_inventory.h"
#include "temporary_tree.h"

#define NODES "sys/class/kfd/kfd/topology/nodes/"

static struct gpu_list listed(const struct temporary_tree *tree) {
    char *dev_root = temporary_tree_path(tree, "dev");
    char *sys_root = temporary_tree_path(tree, "sys");
    struct gpu_list list = gpu_amd_list(dev_root, sys_root);
    free(dev_root);
    free(sys_root);
    return list;
}

static void write_machine(const struct temporary_tree *tree) {
    temporary_tree_write(tree, NODES "0/properties", "cpu_cores_count 64\nsimd_count 0\n");
    temporary_tree_write(tree, NODES "1/properties",
        "simd_count 440\nlocation_id 49920\ndomain 0\ndrm_render_minor 128\n"
        "unique_id 12379813738877118345\n");
    temporary_tree_write(tree, NODES "2/properties",
        "simd_count 440\nlocation_id 50193\ndomain 1\ndrm_render_minor 129\n");
    temporary_tree_write(tree, "dev/dri/renderD128", "");
    temporary_tree_write(tree, "dev/dri/renderD129", "");
}

static void nodes_that_compute_are_gpus(void **state) {
    (void)state;
    struct temporary_tree tree;
    temporary_tree_init(&tree);
    write_machine(&tree);
    temporary_tree_write(&tree, "dev/kfd", "");
    struct gpu_list list = listed(&tree);
    assert_int_equal(list.pci_addresses.count, 2);
    assert_string_equal(list.pci_addresses.items[0], "0000:c3:00.0");
    assert_string_equal(list.pci_addresses.items[1], "0001:c4:02.1");
    assert_string_equal(list.uuids.items[0], "GPU-abcdef0123456789");
    assert_string_equal(list.uuids.items[1], "");
    gpu_list_clear(&list);
    temporary_tree_clear(&tree);
}

static void gpus_a_container_was_not_given_do_not_count(void **state) {
    (void)state;
    struct temporary_tree tree;
    temporary_tree_init(&tree);
    write_machine(&tree);
    temporary_tree_write(&tree, "dev/kfd", "");
    char *withheld = temporary_tree_path(&tree, "dev/dri/renderD128");
    assert_int_equal(unlink(withheld), 0);
    free(withheld);
    struct gpu_list list = listed(&tree);
    assert_int_equal(list.pci_addresses.count, 1);
    assert_string_equal(list.pci_addresses.items[0], "0001:c4:02.1");
    gpu_list_clear(&list);
    temporary_tree_clear(&tree);
}

static void without_the_compute_driver_a_render_node_is_no_gpu(void **state) {
    (void)state;
    struct temporary_tree tree;
    temporary_tree_init(&tree);
    write_machine(&tree); /* there is no dev/kfd */
    struct gpu_list list = listed(&tree);
    assert_int_equal(list.pci_addresses.count, 0);
    gpu_list_clear(&list);
    temporary_tree_clear(&tree);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(nodes_that_compute_are_gpus),
    cmocka_unit_test(gpus_a_container_was_not_given_do_not_count),
    cmocka_unit_test(without_the_compute_driver_a_render_node_is_no_gpu),
};

UNIT_TESTS(tests)
