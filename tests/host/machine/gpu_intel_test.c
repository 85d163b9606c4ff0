/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "host/machine/gpu_inventory.h"
#include "temporary_tree.h"

static struct gpu_list listed(const struct temporary_tree *tree) {
    char *dev_root = temporary_tree_path(tree, "dev");
    char *sys_root = temporary_tree_path(tree, "sys");
    struct gpu_list list = gpu_intel_list(dev_root, sys_root);
    free(dev_root);
    free(sys_root);
    return list;
}

static void write_linked(const struct temporary_tree *tree, char *name_taken, char *target_taken) {
    temporary_tree_link(tree, name_taken, target_taken);
    free(name_taken);
    free(target_taken);
}

static void write_device(const struct temporary_tree *tree, int minor, const char *address,
    const char *vendor, const char *driver) {
    char *vendor_file = text_format("sys/devices/%s/vendor", address);
    temporary_tree_write(tree, vendor_file, vendor);
    free(vendor_file);
    char *driver_file = text_format("sys/drivers/%s/bind", driver);
    temporary_tree_write(tree, driver_file, "");
    free(driver_file);
    write_linked(tree, text_format("sys/devices/%s/driver", address),
        text_format("%s/sys/drivers/%s", tree->root, driver));
    write_linked(tree, text_format("sys/class/drm/renderD%d/device", minor),
        text_format("%s/sys/devices/%s", tree->root, address));
    char *node = text_format("dev/dri/renderD%d", minor);
    temporary_tree_write(tree, node, "");
    free(node);
}

static void only_intels_computing_devices_count(void **state) {
    (void)state;
    struct temporary_tree tree;
    temporary_tree_init(&tree);
    write_device(&tree, 128, "0000:18:00.0", "0x8086\n", "xe");
    write_device(&tree, 129, "0000:2a:00.0", "0x8086\n", "i915");
    write_device(&tree, 130, "0000:3b:00.0", "0x1002\n", "amdgpu");
    write_device(&tree, 131, "0000:4c:00.0", "0x8086\n", "vfio-pci");
    struct gpu_list list = listed(&tree);
    assert_int_equal(list.pci_addresses.count, 2);
    assert_int_equal(list.uuids.count, 2);
    assert_string_equal(list.pci_addresses.items[0], "0000:18:00.0");
    assert_string_equal(list.pci_addresses.items[1], "0000:2a:00.0");
    gpu_list_clear(&list);
    temporary_tree_clear(&tree);
}

static void integrated_graphics_count_only_alone(void **state) {
    (void)state;
    struct temporary_tree tree;
    temporary_tree_init(&tree);
    write_device(&tree, 128, "0000:00:02.0", "0x8086\n", "i915");
    struct gpu_list list = listed(&tree);
    assert_int_equal(list.pci_addresses.count, 1);
    gpu_list_clear(&list);
    write_device(&tree, 129, "0000:18:00.0", "0x8086\n", "xe");
    list = listed(&tree);
    assert_int_equal(list.pci_addresses.count, 1);
    assert_string_equal(list.pci_addresses.items[0], "0000:18:00.0");
    gpu_list_clear(&list);
    temporary_tree_clear(&tree);
}

static void machine_without_render_nodes_has_none(void **state) {
    (void)state;
    struct temporary_tree tree;
    temporary_tree_init(&tree);
    struct gpu_list list = listed(&tree);
    assert_int_equal(list.pci_addresses.count, 0);
    gpu_list_clear(&list);
    temporary_tree_clear(&tree);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(only_intels_computing_devices_count),
    cmocka_unit_test(integrated_graphics_count_only_alone),
    cmocka_unit_test(machine_without_render_nodes_has_none),
};

UNIT_TESTS(tests)
