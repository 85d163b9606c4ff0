/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <unistd.h>

#include "host/machine/machine.h"
#include "temporary_tree.h"

#define FAKE_NVML TESTS_BUILD_DIRECTORY "/libfake_nvml.so"
#define NO_NVML "libno-such-library.so.1"

/* A machine under a temporary root, without any device to begin with. */
struct sample {
    struct temporary_tree tree;
    char *dev_root;
    char *sys_root;
    struct gpu_inventory_source source;
};

static void sample_init(struct sample *sample) {
    temporary_tree_init(&sample->tree);
    sample->dev_root = temporary_tree_path(&sample->tree, "dev");
    sample->sys_root = temporary_tree_path(&sample->tree, "sys");
    sample->source = (struct gpu_inventory_source){
        .nvml_library = NO_NVML, .dev_root = sample->dev_root, .sys_root = sample->sys_root};
}

static void sample_clear(struct sample *sample) {
    temporary_tree_clear(&sample->tree);
    free(sample->dev_root);
    free(sample->sys_root);
}

static void sample_use_nvml(struct sample *sample, const char *devices) {
    sample->source.nvml_library = FAKE_NVML;
    assert_int_equal(setenv("FAKE_NVML_DEVICES", devices, 1), 0);
    assert_int_equal(setenv("FAKE_NVML_BROKEN", "", 1), 0);
}

static void sample_add_amd(const struct sample *sample, int node, int bus) {
    char *name = text_format("sys/class/kfd/kfd/topology/nodes/%d/properties", node);
    char *content = text_format("simd_count 8\ndrm_render_minor %d\nlocation_id %d\nunique_id %d\n",
        128 + node, bus << 8, bus);
    temporary_tree_write(&sample->tree, name, content);
    free(name);
    free(content);
    name = text_format("dev/dri/renderD%d", 128 + node);
    temporary_tree_write(&sample->tree, name, "");
    free(name);
    temporary_tree_write(&sample->tree, "dev/kfd", "");
}

/* `expected`: addresses separated by blanks, "-" for an unknown one. */
static void assert_devices(const struct sample *sample, const char *expected) {
    struct gpu_inventory inventory;
    struct failure failure = {0};
    if (gpu_inventory_read(&sample->source, &inventory, &failure) != FAILURE_NONE) {
        fail_msg("%s", failure.message);
    }
    struct text text = {0};
    for (size_t i = 0; i < inventory.pci_addresses.count; i++) {
        const char *address = inventory.pci_addresses.items[i];
        text_append_format(&text, "%s%s", i > 0 ? " " : "", address[0] != '\0' ? address : "-");
    }
    assert_string_equal(text_string(&text), expected);
    text_clear(&text);
    gpu_inventory_clear(&inventory);
}

#define SAMPLE_TEST(name) TEST_OF(sample, name, sample_init(&fixture), sample_clear)

SAMPLE_TEST(machine_without_devices_is_no_failure) {
    assert_devices(fixture, "");
    fixture->source.cuda_visible_devices = "GPU-1";
    assert_devices(fixture, "");
}

SAMPLE_TEST(nvml_devices_are_selected_by_number_and_uuid) {
    sample_use_nvml(fixture, "3");
    assert_devices(fixture, "0000:10:00.0 0000:11:00.0 0000:12:00.0");
    fixture->source.cuda_visible_devices = "2,0";
    assert_devices(fixture, "0000:12:00.0 0000:10:00.0");
    fixture->source.cuda_visible_devices = "GPU-1,GPU-0";
    assert_devices(fixture, "0000:11:00.0 0000:10:00.0");
    fixture->source.cuda_visible_devices = "1,3,2";
    assert_devices(fixture, "0000:11:00.0");
    fixture->source.cuda_visible_devices = "";
    assert_devices(fixture, "");
}

SAMPLE_TEST(slice_of_a_device_is_one_device) {
    sample_use_nvml(fixture, "3");
    fixture->source.cuda_visible_devices = "MIG-1,MIG-2";
    assert_devices(fixture, "-");
    sample_use_nvml(fixture, "0");
    assert_devices(fixture, "");
}

SAMPLE_TEST(device_files_serve_where_nvml_does_not) {
    temporary_tree_write(&fixture->tree, "dev/nvidia0", "");
    temporary_tree_write(&fixture->tree, "dev/nvidia3", "");
    assert_devices(fixture, "- -");
    sample_use_nvml(fixture, "5");
    assert_int_equal(setenv("FAKE_NVML_BROKEN", "init", 1), 0);
    assert_devices(fixture, "- -");
    fixture->source.cuda_visible_devices = "1";
    assert_devices(fixture, "-");
}

SAMPLE_TEST(other_files_of_the_driver_are_no_devices) {
    temporary_tree_write(&fixture->tree, "dev/nvidia7", "");
    temporary_tree_write(&fixture->tree, "dev/nvidiactl", "");
    temporary_tree_write(&fixture->tree, "dev/nvidia-caps/nvidia-cap1", "");
    assert_devices(fixture, "-");
}

/* What NVML cannot tell of a device is left open; what does not work at all is not asked. */
TEST(an_nvml_that_is_broken_costs_what_it_does_not_tell) {
    static const struct {
        const char *broken;
        const char *count;
        const char *expected;
    } cases[] = {
        {"handle", "1", "-"},
        {"uuid", "1", "0000:10:00.0"},
        {"pci", "1", "-"},
        {"init", "1", "- -"},
        {"count", "1", "- -"},
        {"", "1000000", "- -"},
    };
    struct sample sample;
    sample_init(&sample);
    temporary_tree_write(&sample.tree, "dev/nvidia0", "");
    temporary_tree_write(&sample.tree, "dev/nvidia1", "");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sample_use_nvml(&sample, cases[i].count);
        assert_int_equal(setenv("FAKE_NVML_BROKEN", cases[i].broken, 1), 0);
        assert_devices(&sample, cases[i].expected);
    }
    sample.source.nvml_library = "libc.so.6"; /* a library without NVML's functions */
    assert_devices(&sample, "- -");
    sample_clear(&sample);
}

SAMPLE_TEST(uuids_without_nvml_are_refused_with_advice) {
    temporary_tree_write(&fixture->tree, "dev/nvidia0", "");
    fixture->source.cuda_visible_devices = "GPU-1";
    struct gpu_inventory inventory;
    struct failure failure;
    assert_int_equal(gpu_inventory_read(&fixture->source, &inventory, &failure), FAILURE_INVALID);
    assert_non_null(strstr(failure.message, "CUDA_VISIBLE_DEVICES=GPU-1"));
    assert_non_null(strstr(failure.message, "name them by number"));
}

SAMPLE_TEST(amds_variables_select_one_after_the_other) {
    for (int i = 0; i < 4; i++) {
        sample_add_amd(fixture, i + 1, 0x20 + i);
    }
    assert_devices(fixture, "0000:20:00.0 0000:21:00.0 0000:22:00.0 0000:23:00.0");
    fixture->source.cuda_visible_devices = "3";
    assert_devices(fixture, "0000:23:00.0");
    fixture->source.rocr_visible_devices = "1,2,3";
    assert_devices(fixture, "0000:21:00.0 0000:22:00.0 0000:23:00.0");
    fixture->source.hip_visible_devices = "2,0";
    assert_devices(fixture, "0000:23:00.0 0000:21:00.0");
    fixture->source.hip_visible_devices = "GPU-0000000000000022";
    assert_devices(fixture, "0000:22:00.0");
}

/* A node of the processor; and render nodes that a container was not given. */
SAMPLE_TEST(nodes_that_do_not_compute_are_no_gpus) {
    temporary_tree_write(&fixture->tree, "sys/class/kfd/kfd/topology/nodes/0/properties",
        "cpu_cores_count 64\nsimd_count 0\n");
    temporary_tree_write(&fixture->tree, "sys/class/kfd/kfd/topology/nodes/9/properties",
        "simd_count 440\nlocation_id 50193\ndomain 1\ndrm_render_minor 137\n");
    temporary_tree_write(&fixture->tree, "dev/dri/renderD137", "");
    assert_devices(fixture, ""); /* there is no dev/kfd */
    sample_add_amd(fixture, 1, 0x20);
    assert_devices(fixture, "0000:20:00.0 0001:c4:02.1");
    char *withheld = temporary_tree_path(&fixture->tree, "dev/dri/renderD129");
    assert_int_equal(unlink(withheld), 0);
    free(withheld);
    assert_devices(fixture, "0001:c4:02.1");
}

SAMPLE_TEST(nvidias_devices_come_before_amds) {
    sample_add_amd(fixture, 1, 0x20);
    sample_use_nvml(fixture, "1");
    assert_devices(fixture, "0000:10:00.0");
    sample_use_nvml(fixture, "0");
    assert_devices(fixture, "0000:20:00.0");
}

static void link_taken(const struct sample *sample, char *name_taken, char *target_taken) {
    temporary_tree_link(&sample->tree, name_taken, target_taken);
    free(name_taken);
    free(target_taken);
}

static void add_render_node(const struct sample *sample, int minor, const char *address,
    const char *vendor, const char *driver) {
    char *names[] = {text_format("sys/devices/%s/vendor", address),
        text_format("sys/drivers/%s/bind", driver), text_format("dev/dri/renderD%d", minor)};
    for (int i = 0; i < 3; i++) {
        temporary_tree_write(&sample->tree, names[i], i == 0 ? vendor : "");
        free(names[i]);
    }
    link_taken(sample, text_format("sys/devices/%s/driver", address),
        text_format("%s/drivers/%s", sample->sys_root, driver));
    link_taken(sample, text_format("sys/class/drm/renderD%d/device", minor),
        text_format("%s/devices/%s", sample->sys_root, address));
}

static void assert_xpus(const struct sample *sample, const char *expected) {
    struct gpu_inventory inventory;
    struct text text = {0};
    assert_int_equal(gpu_inventory_read_xpu(&sample->source, &inventory, NULL), FAILURE_NONE);
    for (size_t i = 0; i < inventory.pci_addresses.count; i++) {
        text_append_format(&text, "%s ", inventory.pci_addresses.items[i]);
    }
    assert_string_equal(text_string(&text), expected);
    text_clear(&text);
    gpu_inventory_clear(&inventory);
}

SAMPLE_TEST(intels_devices_count_only_when_asked_for) {
    assert_xpus(fixture, "");
    add_render_node(fixture, 128, "0000:00:02.0", "0x8086\n", "i915");
    assert_devices(fixture, "");
    assert_xpus(fixture, "0000:00:02.0 "); /* that of a processor, which counts only alone */
    add_render_node(fixture, 129, "0000:18:00.0", "0x8086\n", "xe");
    add_render_node(fixture, 130, "0000:2a:00.0", "0x8086\n", "i915");
    add_render_node(fixture, 131, "0000:3b:00.0", "0x1002\n", "amdgpu");
    add_render_node(fixture, 132, "0000:4c:00.0", "0x8086\n", "vfio-pci");
    assert_xpus(fixture, "0000:18:00.0 0000:2a:00.0 ");
    struct gpu_inventory inventory;
    struct failure failure;
    fixture->source.ze_affinity_mask = "0.1";
    assert_int_equal(
        gpu_inventory_read_xpu(&fixture->source, &inventory, &failure), FAILURE_UNSUPPORTED);
    assert_non_null(strstr(failure.message, "ZE_AFFINITY_MASK=0.1"));
}

TEST(real_source_reads_this_processs_environment) {
    assert_int_equal(setenv("CUDA_VISIBLE_DEVICES", "5", 1), 0);
    assert_int_equal(unsetenv("HIP_VISIBLE_DEVICES"), 0);
    struct gpu_inventory_source source;
    gpu_inventory_source_init(&source);
    assert_string_equal(source.cuda_visible_devices, "5");
    assert_null(source.hip_visible_devices);
    assert_string_equal(source.dev_root, "/dev");
}
