/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/machine/gpu_amd.h"

#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/bytes.h"
#include "core/machine/kfd_properties.h"
#include "host/loop/number_directory.h"
#include "host/loop/whole_file.h"

#define PROPERTIES_CEILING ((size_t)65536)

/* Frees the path. */
static bool exists(char *path_taken) {
    bool is_there = access(path_taken, F_OK) == 0;
    free(path_taken);
    return is_there;
}

/* A node that cannot be read belongs to another container and does not count as a GPU. */
static struct kfd_properties read_node(const char *nodes_path, int node) {
    struct kfd_properties properties = {0};
    struct bytes bytes = {0};
    char *path = text_format("%s/%d/properties", nodes_path, node);
    if (whole_file_read(path, true, PROPERTIES_CEILING, &bytes, NULL) == FAILURE_NONE) {
        properties = kfd_properties_parse(bytes_slice(&bytes));
    }
    bytes_clear(&bytes);
    free(path);
    return properties;
}

static void add_gpu(struct gpu_list *list, const struct kfd_properties *gpu) {
    text_list_add_taken(&list->pci_addresses,
        text_format("%04" PRIx64 ":%02" PRIx64 ":%02" PRIx64 ".%" PRIx64, gpu->domain,
            gpu->location_id >> 8 & 0xff, gpu->location_id >> 3 & 0x1f, gpu->location_id & 7));
    text_list_add_taken(&list->uuids, gpu->unique_id != 0
                                          ? text_format("GPU-%016" PRIx64, gpu->unique_id)
                                          : text_format("%s", ""));
}

struct gpu_list gpu_amd_list(const char *dev_root, const char *sys_root) {
    struct gpu_list list = {.has_uuids = true};
    if (!exists(text_format("%s/kfd", dev_root))) {
        return list;
    }
    char *nodes_path = text_format("%s/class/kfd/kfd/topology/nodes", sys_root);
    struct number_list nodes = number_directory_list(nodes_path, "");
    for (size_t i = 0; i < nodes.count; i++) {
        struct kfd_properties gpu = read_node(nodes_path, nodes.items[i]);
        if (gpu.simd_count > 0 &&
            exists(text_format("%s/dri/renderD%" PRIu64, dev_root, gpu.drm_render_minor))) {
            add_gpu(&list, &gpu);
        }
    }
    number_list_clear(&nodes);
    free(nodes_path);
    return list;
}
