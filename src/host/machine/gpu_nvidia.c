/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/machine/gpu_nvidia.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>

#include "core/machine/cpu_plan.h"
#include "host/loop/number_directory.h"

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

static enum failure_code nvml_load(
    const char *library, struct nvml *nvml, struct failure *failure) {
    nvml->handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (nvml->handle == NULL) {
        return failure_set(failure, FAILURE_MISSING, "%s", dlerror());
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
        return failure_set(failure, FAILURE_MISSING, "%s lacks functions of NVML", library);
    }
    return FAILURE_NONE;
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

static enum failure_code list_devices(
    const struct nvml *nvml, struct gpu_list *list, struct failure *failure) {
    unsigned int count = 0;
    int status = nvml->device_count(&count);
    if (status != NVML_SUCCESS) {
        return failure_set(failure, FAILURE_SYSTEM, "NVML cannot count devices: error %d", status);
    }
    if (count > MACHINE_MAXIMUM_DEVICES) {
        return failure_set(failure, FAILURE_SYSTEM, "NVML claims %u devices", count);
    }
    for (unsigned int i = 0; i < count; i++) {
        add_device(nvml, i, list);
    }
    list->has_uuids = true;
    return FAILURE_NONE;
}

enum failure_code gpu_nvidia_ask_nvml(
    const char *library, struct gpu_list *out_list, struct failure *failure) {
    struct nvml nvml = {.handle = NULL};
    enum failure_code code = nvml_load(library, &nvml, failure);
    if (code != FAILURE_NONE) {
        return code;
    }
    int status = nvml.init();
    if (status == NVML_SUCCESS) {
        struct gpu_list list = {0};
        code = list_devices(&nvml, &list, failure);
        (void)nvml.shutdown(); /* the result does not matter */
        if (code == FAILURE_NONE) {
            *out_list = list;
        }
    } else {
        code = failure_set(failure, FAILURE_SYSTEM, "NVML does not start: error %d", status);
    }
    (void)dlclose(nvml.handle);
    return code;
}

struct gpu_list gpu_nvidia_count_files(const char *dev_root) {
    struct gpu_list list = {0};
    struct number_list entries = number_directory_list(dev_root, "nvidia");
    for (size_t i = 0; i < entries.count; i++) {
        text_list_add(&list.pci_addresses, "");
        text_list_add(&list.uuids, "");
    }
    number_list_clear(&entries);
    return list;
}
