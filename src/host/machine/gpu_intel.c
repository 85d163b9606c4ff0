/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/machine/gpu_intel.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "host/loop/number_directory.h"
#include "host/loop/whole_file.h"

#define VENDOR_FILE_CEILING ((size_t)64)
#define INTEGRATED_ADDRESS "0000:00:02.0" /* of every Intel processor's own graphics */

/* Resolves the path and returns a copy of its last part; NULL when the path does not resolve. Frees
 * the path. */
static char *real_name(char *path_taken) {
    char *real = realpath(path_taken, NULL);
    free(path_taken);
    if (real == NULL) {
        return NULL;
    }
    const char *slash = strrchr(real, '/');
    char *name = text_format("%s", slash + 1);
    free(real);
    return name;
}

static bool is_from_intel(const char *device_path) {
    struct bytes bytes = {0};
    char *path = text_format("%s/vendor", device_path);
    bool is_intel =
        whole_file_read(path, true, VENDOR_FILE_CEILING, &bytes, NULL) == FAILURE_NONE &&
        slice_starts_with(bytes_slice(&bytes), slice_from_string("0x8086"));
    free(path);
    bytes_clear(&bytes);
    return is_intel;
}

static bool has_computing_driver(const char *device_path) {
    char *driver = real_name(text_format("%s/driver", device_path));
    bool computes = driver != NULL && (text_equals(driver, "i915") || text_equals(driver, "xe"));
    free(driver);
    return computes;
}

static bool is_integrated(const char *address) {
    return text_equals(address, INTEGRATED_ADDRESS);
}

static bool has_discrete(const struct gpu_list *list) {
    for (size_t i = 0; i < list->pci_addresses.count; i++) {
        if (!is_integrated(list->pci_addresses.items[i])) {
            return true;
        }
    }
    return false;
}

static struct gpu_list without_integrated(struct gpu_list *list) {
    struct gpu_list rest = {0};
    for (size_t i = 0; i < list->pci_addresses.count; i++) {
        if (!is_integrated(list->pci_addresses.items[i])) {
            text_list_add(&rest.pci_addresses, list->pci_addresses.items[i]);
            text_list_add(&rest.uuids, "");
        }
    }
    gpu_list_clear(list);
    return rest;
}

struct gpu_list gpu_intel_list(const char *dev_root, const char *sys_root) {
    struct gpu_list list = {0};
    char *nodes_path = text_format("%s/dri", dev_root);
    struct number_list nodes = number_directory_list(nodes_path, "renderD");
    for (size_t i = 0; i < nodes.count; i++) {
        char *device = text_format("%s/class/drm/renderD%d/device", sys_root, nodes.items[i]);
        if (is_from_intel(device) && has_computing_driver(device)) {
            char *address = real_name(text_format("%s", device));
            text_list_add_taken(
                &list.pci_addresses, address != NULL ? address : text_format("%s", ""));
            text_list_add(&list.uuids, "");
        }
        free(device);
    }
    number_list_clear(&nodes);
    free(nodes_path);
    return has_discrete(&list) ? without_integrated(&list) : list;
}
