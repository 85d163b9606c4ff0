/* SPDX-License-Identifier: BSD-3-Clause */
/* A stand-in for NVIDIA's management library, with as many devices as FAKE_NVML_DEVICES says;
 * FAKE_NVML_BROKEN names the call that fails ("init", "count", "handle", "uuid", "pci"). Device i
 * has the UUID GPU-<i>000-fake and sits at domain 0, bus 0x10 + i, device 0. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SUCCESS 0
#define BROKEN 999

struct pci_info {
    char bus_id_legacy[16];
    unsigned int domain;
    unsigned int bus;
    unsigned int device;
    unsigned int pci_device_id;
    unsigned int pci_subsystem_id;
    char bus_id[32];
};

int nvmlInit_v2(void);
int nvmlShutdown(void);
int nvmlDeviceGetCount_v2(unsigned int *out_count);
int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void **out_device);
int nvmlDeviceGetUUID(void *device, char *out_uuid, unsigned int length);
int nvmlDeviceGetPciInfo_v3(void *device, struct pci_info *out_info);

static char devices[64];

static int status_of(const char *call) {
    const char *broken = getenv("FAKE_NVML_BROKEN");
    return broken != NULL && strcmp(broken, call) == 0 ? BROKEN : SUCCESS;
}

int nvmlInit_v2(void) {
    return status_of("init");
}

int nvmlShutdown(void) {
    return SUCCESS;
}

int nvmlDeviceGetCount_v2(unsigned int *out_count) {
    const char *count = getenv("FAKE_NVML_DEVICES");
    *out_count = count != NULL ? (unsigned int)strtoul(count, NULL, 10) : 0;
    return status_of("count");
}

int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void **out_device) {
    *out_device = &devices[index];
    return status_of("handle");
}

int nvmlDeviceGetUUID(void *device, char *out_uuid, unsigned int length) {
    (void)snprintf(out_uuid, length, "GPU-%d000-fake", (int)((char *)device - devices));
    return status_of("uuid");
}

int nvmlDeviceGetPciInfo_v3(void *device, struct pci_info *out_info) {
    memset(out_info, 0, sizeof *out_info);
    out_info->bus = 0x10U + (unsigned int)((char *)device - devices);
    return status_of("pci");
}
