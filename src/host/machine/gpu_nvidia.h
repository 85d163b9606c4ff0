/* SPDX-License-Identifier: BSD-3-Clause */
/* NVIDIA's GPUs, from NVML or from /dev. NVML is the driver's management library; it is loaded for
 * this question and unloaded afterwards. No CUDA context is created. */
#ifndef MUSTER_HOST_MACHINE_GPU_NVIDIA_H
#define MUSTER_HOST_MACHINE_GPU_NVIDIA_H

#include "base/failure.h"
#include "host/machine/gpu_list.h"

/* NVML's devices, in PCI bus order. FAILURE_MISSING when the library is missing or is not NVML,
 * FAILURE_SYSTEM when it does not work (no driver loaded, …). The caller clears the result. */
__attribute__((warn_unused_result)) enum failure_code gpu_nvidia_ask_nvml(
    const char *library, struct gpu_list *out_list, struct failure *failure);

/* One device for each file <dev_root>/nvidia<number>; nothing else is known of it. The caller
 * clears the result. */
struct gpu_list gpu_nvidia_count_files(const char *dev_root);

#endif
