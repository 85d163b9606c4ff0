/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "host/machine/gpu_inventory.h"
#include "temporary_tree.h"

#define FAKE_NVML TESTS_BUILD_DIRECTORY "/libfake_nvml.so"

static void set_fake(const char *devices, const char *broken) {
    assert_int_equal(setenv("FAKE_NVML_DEVICES", devices, 1), 0);
    assert_int_equal(setenv("FAKE_NVML_BROKEN", broken, 1), 0);
}

static void nvml_tells_uuids_and_addresses(void **state) {
    (void)state;
    set_fake("2", "");
    struct gpu_list list;
    struct failure failure = {0};
    if (gpu_nvidia_ask_nvml(FAKE_NVML, &list, &failure) != FAILURE_NONE) {
        fail_msg("%s", failure.message);
    }
    assert_true(list.has_uuids);
    assert_int_equal(list.uuids.count, 2);
    assert_string_equal(list.uuids.items[1], "GPU-1000-fake");
    assert_int_equal(list.pci_addresses.count, 2);
    assert_string_equal(list.pci_addresses.items[0], "0000:10:00.0");
    assert_string_equal(list.pci_addresses.items[1], "0000:11:00.0");
    gpu_list_clear(&list);
}

static void device_nvml_tells_nothing_of_is_still_a_device(void **state) {
    (void)state;
    static const struct {
        const char *broken;
        const char *uuid;
        const char *address;
    } cases[] = {
        {"handle", "", ""},
        {"uuid", "", "0000:10:00.0"},
        {"pci", "GPU-0000-fake", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        set_fake("1", cases[i].broken);
        struct gpu_list list;
        assert_int_equal(gpu_nvidia_ask_nvml(FAKE_NVML, &list, NULL), FAILURE_NONE);
        assert_int_equal(list.uuids.count, 1);
        assert_string_equal(list.uuids.items[0], cases[i].uuid);
        assert_string_equal(list.pci_addresses.items[0], cases[i].address);
        gpu_list_clear(&list);
    }
}

static void nvml_that_does_not_work_says_why(void **state) {
    (void)state;
    struct gpu_list list;
    struct failure failure;
    set_fake("1", "init");
    assert_int_equal(gpu_nvidia_ask_nvml(FAKE_NVML, &list, &failure), FAILURE_SYSTEM);
    assert_string_equal(failure.message, "NVML does not start: error 999");
    set_fake("1", "count");
    assert_int_equal(gpu_nvidia_ask_nvml(FAKE_NVML, &list, &failure), FAILURE_SYSTEM);
    assert_string_equal(failure.message, "NVML cannot count devices: error 999");
    set_fake("1000000", "");
    assert_int_equal(gpu_nvidia_ask_nvml(FAKE_NVML, &list, &failure), FAILURE_SYSTEM);
    assert_string_equal(failure.message, "NVML claims 1000000 devices");
}

static void library_that_is_not_nvml_is_missing(void **state) {
    (void)state;
    struct gpu_list list;
    struct failure failure;
    assert_int_equal(
        gpu_nvidia_ask_nvml("libno-such-library.so.1", &list, &failure), FAILURE_MISSING);
    assert_non_null(strstr(failure.message, "libno-such-library.so.1"));
    assert_int_equal(gpu_nvidia_ask_nvml("libc.so.6", &list, &failure), FAILURE_MISSING);
    assert_string_equal(failure.message, "libc.so.6 lacks functions of NVML");
}

static void device_files_are_counted(void **state) {
    (void)state;
    struct temporary_tree tree;
    temporary_tree_init(&tree);
    temporary_tree_write(&tree, "nvidia0", "");
    temporary_tree_write(&tree, "nvidia7", "");
    temporary_tree_write(&tree, "nvidiactl", "");
    temporary_tree_write(&tree, "nvidia-caps/nvidia-cap1", "");
    struct gpu_list list = gpu_nvidia_count_files(tree.root);
    assert_int_equal(list.pci_addresses.count, 2);
    assert_int_equal(list.uuids.count, 2);
    assert_false(list.has_uuids);
    gpu_list_clear(&list);
    temporary_tree_clear(&tree);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(nvml_tells_uuids_and_addresses),
    cmocka_unit_test(device_nvml_tells_nothing_of_is_still_a_device),
    cmocka_unit_test(nvml_that_does_not_work_says_why),
    cmocka_unit_test(library_that_is_not_nvml_is_missing),
    cmocka_unit_test(device_files_are_counted),
};

UNIT_TESTS(tests)
