/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/machine/machine.h"

#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "host/loop/files.h"

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

/* Gpu inventory. */

/* The physical GPUs that one vendor's driver shows, before any environment variable selects among
 * them. */

/* Both lists are indexed by the driver's device index and have the same length. A zeroed struct is
 * an empty list. */
struct gpu_list {
    struct text_list pci_addresses; /* "0000:3b:00.0", or "" when unknown */
    struct text_list uuids;         /* "GPU-…", or "" when unknown */
    bool has_uuids;                 /* whether the driver was asked for UUIDs at all */
};

static void gpu_list_clear(struct gpu_list *list) {
    text_list_clear(&list->pci_addresses);
    text_list_clear(&list->uuids);
    list->has_uuids = false;
}

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

/* AMD's GPUs, as the kernel's compute driver (KFD) shows them: nodes with SIMD units whose render
 * node exists under /dev. A container sees the render nodes that it was given. */

/* The GPUs in the driver's order; empty when there is no driver or no device. UUIDs are spelled as
 * AMD's runtime spells them, "GPU-" and 16 hexadecimal digits. The caller clears the result. */
static struct gpu_list gpu_amd_list(const char *dev_root, const char *sys_root) {
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

/* Gpu intel. */

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

/* Intel's GPUs: render nodes of vendor 0x8086 whose kernel driver can compute (i915, xe). As in
 * torch.xpu, the integrated graphics of a processor counts only when there is no other GPU. */

/* The GPUs in the order of their render nodes' numbers, without UUIDs. The caller clears the
 * result. */
static struct gpu_list gpu_intel_list(const char *dev_root, const char *sys_root) {
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

/* Gpu nvidia. */

/* The part of NVML's stable binary interface that is used here; nvml.h is often not installed. */
#define NVML_SUCCESS 0
#define NVML_UUID_SIZE 96

struct nvml_pci_info {
    char bus_id_legacy[16];
    unsigned int domain;
    unsigned int bus;
    unsigned int device;
    unsigned int pci_device_id;
    unsigned int pci_subsystem_id;
    char bus_id[32];
};

struct nvml {
    void *handle;
    int (*init)(void);
    int (*shutdown)(void);
    int (*device_count)(unsigned int *out_count);
    int (*device_handle)(unsigned int index, void **out_device);
    int (*device_uuid)(void *device, char *out_uuid, unsigned int length);
    int (*device_pci_info)(void *device, struct nvml_pci_info *out_info);
};

/* POSIX, unlike C, allows a function pointer to be converted from dlsym's void *. */
#define LOAD(nvml, member, name)                                                                   \
    ((nvml)->member = (__typeof__((nvml)->member))dlsym((nvml)->handle, name))

static bool nvml_load(const char *library, struct nvml *nvml) {
    nvml->handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (nvml->handle == NULL) {
        return false;
    }
    LOAD(nvml, init, "nvmlInit_v2");
    LOAD(nvml, shutdown, "nvmlShutdown");
    LOAD(nvml, device_count, "nvmlDeviceGetCount_v2");
    LOAD(nvml, device_handle, "nvmlDeviceGetHandleByIndex_v2");
    LOAD(nvml, device_uuid, "nvmlDeviceGetUUID");
    LOAD(nvml, device_pci_info, "nvmlDeviceGetPciInfo_v3");
    if (nvml->init == NULL || nvml->shutdown == NULL || nvml->device_count == NULL ||
        nvml->device_handle == NULL || nvml->device_uuid == NULL || nvml->device_pci_info == NULL) {
        (void)dlclose(nvml->handle);
        return false;
    }
    return true;
}

/* A device counts even when NVML does not tell its address or UUID; the field then stays empty. */
static void add_device(const struct nvml *nvml, unsigned int index, struct gpu_list *list) {
    void *device = NULL;
    char uuid[NVML_UUID_SIZE] = "";
    char *address = NULL;
    if (nvml->device_handle(index, &device) == NVML_SUCCESS) {
        if (nvml->device_uuid(device, uuid, sizeof uuid) != NVML_SUCCESS) {
            uuid[0] = '\0';
        }
        uuid[sizeof uuid - 1] = '\0';
        struct nvml_pci_info info = {.domain = 0};
        if (nvml->device_pci_info(device, &info) == NVML_SUCCESS) {
            address = text_format("%04x:%02x:%02x.0", info.domain, info.bus, info.device);
        }
    }
    text_list_add(&list->uuids, uuid);
    text_list_add_taken(&list->pci_addresses, address != NULL ? address : text_format("%s", ""));
}

static bool list_devices(const struct nvml *nvml, struct gpu_list *list) {
    unsigned int count = 0;
    if (nvml->device_count(&count) != NVML_SUCCESS || count > MACHINE_MAXIMUM_DEVICES) {
        return false;
    }
    for (unsigned int i = 0; i < count; i++) {
        add_device(nvml, i, list);
    }
    list->has_uuids = true;
    return true;
}

/* NVIDIA's GPUs, from NVML or from /dev. NVML is the driver's management library; it is loaded for
 * this question and unloaded afterwards. No CUDA context is created. */

/* NVML's devices, in PCI bus order. False when the library is missing, is not NVML, or does not
 * work (no driver loaded, …). The caller clears the result. */
static bool gpu_nvidia_ask_nvml(const char *library, struct gpu_list *out_list) {
    struct nvml nvml = {.handle = NULL};
    bool has_list = false;
    if (!nvml_load(library, &nvml)) {
        return false;
    }
    if (nvml.init() == NVML_SUCCESS) {
        has_list = list_devices(&nvml, out_list);
        (void)nvml.shutdown(); /* the result does not matter */
    }
    (void)dlclose(nvml.handle);
    return has_list;
}

/* One device for each file <dev_root>/nvidia<number>; nothing else is known of it. The caller
 * clears the result. */
static struct gpu_list gpu_nvidia_count_files(const char *dev_root) {
    struct gpu_list list = {0};
    struct number_list entries = number_directory_list(dev_root, "nvidia");
    for (size_t i = 0; i < entries.count; i++) {
        text_list_add(&list.pci_addresses, "");
        text_list_add(&list.uuids, "");
    }
    number_list_clear(&entries);
    return list;
}

/* Gpu inventory. */

#define NVML_LIBRARY "libnvidia-ml.so.1"

void gpu_inventory_source_init(struct gpu_inventory_source *source) {
    *source = (struct gpu_inventory_source){
        .nvml_library = NVML_LIBRARY,
        .dev_root = "/dev",
        .sys_root = "/sys",
        .cuda_visible_devices = getenv("CUDA_VISIBLE_DEVICES"),
        .rocr_visible_devices = getenv("ROCR_VISIBLE_DEVICES"),
        .hip_visible_devices = getenv("HIP_VISIBLE_DEVICES"),
        .ze_affinity_mask = getenv("ZE_AFFINITY_MASK"),
    };
}

void gpu_inventory_clear(struct gpu_inventory *inventory) {
    text_list_clear(&inventory->pci_addresses);
}

static void add_unknown_device(struct gpu_list *list) {
    text_list_add(&list->pci_addresses, "");
    text_list_add(&list->uuids, "");
}

/* Keeps only the devices that the variable's value selects. */
static enum failure_code keep_visible(
    struct gpu_list *list, const char *name, const char *value, struct failure *failure) {
    struct visible_devices visible = {0};
    enum failure_code code = visible_devices_select(
        value, list->pci_addresses.count, list->has_uuids ? &list->uuids : NULL, &visible);
    struct gpu_list kept = {.has_uuids = list->has_uuids};
    if (code == FAILURE_UNSUPPORTED) {
        add_unknown_device(
            &kept); /* slices (MIG) count as one, because CUDA shows a process only one of them */
    } else if (code != FAILURE_NONE) {
        return failure_set(failure, FAILURE_INVALID,
            "%s=%s names devices by UUID, which only NVML (" NVML_LIBRARY
            ") can tell apart: name them by number",
            name, value);
    }
    for (size_t i = 0; i < visible.count; i++) {
        text_list_add(&kept.pci_addresses, list->pci_addresses.items[visible.ordinals[i]]);
        text_list_add(&kept.uuids, list->uuids.items[visible.ordinals[i]]);
    }
    visible_devices_clear(&visible);
    gpu_list_clear(list);
    *list = kept;
    return FAILURE_NONE;
}

static enum failure_code read_nvidia(
    const struct gpu_inventory_source *source, struct gpu_list *list, struct failure *failure) {
    if (!gpu_nvidia_ask_nvml(source->nvml_library, list)) {
        *list = gpu_nvidia_count_files(source->dev_root);
    }
    if (list->pci_addresses.count == 0) {
        return FAILURE_NONE;
    }
    return keep_visible(list, "CUDA_VISIBLE_DEVICES", source->cuda_visible_devices, failure);
}

/* ROCR_VISIBLE_DEVICES applies in a lower layer than the other two variables, which number the
 * devices that it leaves. When it is set, PyTorch reads only HIP_VISIBLE_DEVICES of the other
 * two. */
static enum failure_code read_amd(
    const struct gpu_inventory_source *source, struct gpu_list *list, struct failure *failure) {
    *list = gpu_amd_list(source->dev_root, source->sys_root);
    if (list->pci_addresses.count == 0) {
        return FAILURE_NONE;
    }
    enum failure_code code =
        keep_visible(list, "ROCR_VISIBLE_DEVICES", source->rocr_visible_devices, failure);
    if (code != FAILURE_NONE) {
        return code;
    }
    if (source->hip_visible_devices != NULL) {
        return keep_visible(list, "HIP_VISIBLE_DEVICES", source->hip_visible_devices, failure);
    }
    if (source->rocr_visible_devices != NULL) {
        return FAILURE_NONE;
    }
    return keep_visible(list, "CUDA_VISIBLE_DEVICES", source->cuda_visible_devices, failure);
}

static void take_addresses(struct gpu_list *list, struct gpu_inventory *inventory) {
    inventory->pci_addresses = list->pci_addresses;
    list->pci_addresses = (struct text_list){0};
    gpu_list_clear(list);
}

enum failure_code gpu_inventory_read(const struct gpu_inventory_source *source,
    struct gpu_inventory *out_inventory, struct failure *failure) {
    struct gpu_list list = {0};
    enum failure_code code = read_nvidia(source, &list, failure);
    if (code == FAILURE_NONE && list.pci_addresses.count == 0) {
        gpu_list_clear(&list);
        code = read_amd(source, &list, failure);
    }
    if (code != FAILURE_NONE) {
        gpu_list_clear(&list);
        return code;
    }
    take_addresses(&list, out_inventory);
    return FAILURE_NONE;
}

enum failure_code gpu_inventory_read_xpu(const struct gpu_inventory_source *source,
    struct gpu_inventory *out_inventory, struct failure *failure) {
    if (source->ze_affinity_mask != NULL && source->ze_affinity_mask[0] != '\0') {
        return failure_set(failure, FAILURE_UNSUPPORTED,
            "ZE_AFFINITY_MASK=%s is set, and only Intel's runtime knows how many devices that "
            "leaves: give the number of workers",
            source->ze_affinity_mask);
    }
    struct gpu_list list = gpu_intel_list(source->dev_root, source->sys_root);
    take_addresses(&list, out_inventory);
    return FAILURE_NONE;
}

/* Memory limit. */

#define FILE_CEILING 65536
#define BYTES_PER_KIB 1024

/* Where the cgroups of a version are, and the files with their limit and with what they use. */
struct hierarchy {
    const char *controllers; /* in the line of /proc/self/cgroup */
    const char *mount;
    const char *file;
    const char *usage_file;
};

#define HIERARCHY_COUNT 3

static const struct hierarchy hierarchies[HIERARCHY_COUNT] = {
    {"", "/sys/fs/cgroup", "memory.max", "memory.current"},
    {"", "/sys/fs/cgroup/unified", "memory.max", "memory.current"},
    {"memory", "/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes"},
};

static const struct hierarchy task_hierarchies[HIERARCHY_COUNT] = {
    {"", "/sys/fs/cgroup", "pids.max", "pids.current"},
    {"", "/sys/fs/cgroup/unified", "pids.max", "pids.current"},
    {"pids", "/sys/fs/cgroup/pids", "pids.max", "pids.current"},
};

/* Where the cgroups are, and what is asked for. */
struct question {
    const char *root;
    bool is_of_room;  /* of what is left; else of the limit */
    bool is_of_tasks; /* of how much more is left than is in use; else of memory */
};

/* The file as text, which the caller frees; NULL when it cannot be read. */
static char *read_text(const char *path) {
    struct bytes bytes = {0};
    char *text = NULL;
    if (whole_file_read(path, true, FILE_CEILING, &bytes, NULL) == FAILURE_NONE) {
        text = memory_allocate(bytes.length + 1);
        memcpy(text, bytes.data, bytes.length);
    }
    bytes_clear(&bytes);
    return text;
}

/* The number in the file of a cgroup. False for "max" and whatever else is no number. */
static bool read_number(const struct question *question, const struct hierarchy *hierarchy,
    const char *path, const char *name, uint64_t *out_number) {
    char *file = text_format("%s%s%s/%s", question->root, hierarchy->mount, path, name);
    char *text = read_text(file);
    char *end = text;
    unsigned long long value = text == NULL ? 0 : strtoull(text, &end, 10);
    bool is_number = end != text;
    if (is_number) {
        *out_number = value;
    }
    free(text);
    free(file);
    return is_number;
}

/* Lowers `*limit` to what one cgroup allows. */
static void apply_file(const struct question *question, const struct hierarchy *hierarchy,
    const char *path, uint64_t *limit) {
    uint64_t value;
    uint64_t usage = 0;
    if (!read_number(question, hierarchy, path, hierarchy->file, &value) || value == 0) {
        return;
    }
    if (question->is_of_room) {
        (void)!read_number(question, hierarchy, path, hierarchy->usage_file, &usage);
        value = value > usage ? value - usage : 0;
    }
    if (question->is_of_tasks) {
        value = value > usage ? value - usage : 0;
    }
    *limit = value < *limit ? value : *limit;
}

/* The limit of the cgroup and of each one around it. In a container the path may be that of the
 * host, while the container sees its own cgroup as the root: then only the last one is there. */
static void apply_cgroup(const struct question *question, const struct hierarchy *hierarchy,
    char *path, uint64_t *limit) {
    for (;;) {
        apply_file(question, hierarchy, path, limit);
        char *last = strrchr(path, '/');
        if (last == NULL) {
            return;
        }
        *last = '\0';
    }
}

/* A line like "4:memory:/path", "4:cpu,memory:/path" or "0::/path". */
static void apply_line(const struct question *question, char *line, uint64_t *limit) {
    char *controllers = strchr(line, ':');
    char *path = controllers != NULL ? strchr(controllers + 1, ':') : NULL;
    if (path == NULL) {
        return;
    }
    *path++ = '\0';
    char *list = text_format(",%s,", controllers + 1);
    const struct hierarchy *each = question->is_of_tasks ? task_hierarchies : hierarchies;
    for (int i = 0; i < HIERARCHY_COUNT; i++) {
        char *wanted = text_format(",%s,", each[i].controllers);
        if (strstr(list, wanted) != NULL) {
            char *own_path = memory_duplicate_string(path);
            apply_cgroup(question, &each[i], own_path, limit);
            free(own_path);
        }
        free(wanted);
    }
    free(list);
}

static void apply_cgroups(const struct question *question, uint64_t *limit) {
    char *file = text_format("%s/proc/self/cgroup", question->root);
    char *cgroups = read_text(file);
    char *rest = cgroups;
    char *line;
    while (rest != NULL && (line = strsep(&rest, "\n")) != NULL) {
        apply_line(question, line, limit);
    }
    free(cgroups);
    free(file);
}

uint64_t memory_limit_read(const char *root) {
    const struct question question = {.root = root};
    uint64_t limit = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    struct rlimit address_space;
    if (getrlimit(RLIMIT_AS, &address_space) == 0 && address_space.rlim_cur < limit) {
        limit = address_space.rlim_cur;
    }
    apply_cgroups(&question, &limit);
    return limit;
}

/* "MemAvailable:   12345 kB" */
static uint64_t available_memory(const char *root) {
    static const char label[] = "\nMemAvailable:";
    char *file = text_format("%s/proc/meminfo", root);
    char *text = read_text(file);
    const char *line = text == NULL ? NULL : strstr(text, label);
    uint64_t available =
        line == NULL ? UINT64_MAX : strtoull(line + strlen(label), NULL, 10) * BYTES_PER_KIB;
    free(text);
    free(file);
    return available;
}

uint64_t memory_limit_room(const char *root) {
    const struct question question = {.root = root, .is_of_room = true};
    uint64_t room = available_memory(root);
    apply_cgroups(&question, &room);
    return room;
}

bool task_limit_is_near(const char *root) {
    const struct question question = {.root = root, .is_of_room = true, .is_of_tasks = true};
    uint64_t room = UINT64_MAX;
    apply_cgroups(&question, &room);
    return room == 0;
}
