/* SPDX-License-Identifier: BSD-3-Clause */
/* NVIDIA's GPUs: asked of NVML, the driver's management library, which is loaded for the question
 * and let go again; or counted from /dev. Makes no CUDA context. */
#ifndef MUSTER_HOST_GPU_NVIDIA_H
#define MUSTER_HOST_GPU_NVIDIA_H

#include "base/failure.h"
#include "host/gpu_list.h"

/* NVML's devices, in PCI bus order. FAILURE_MISSING when the library is not there or not NVML,
 * FAILURE_SYSTEM when it does not work (no driver loaded, …). The caller clears the result. */
__attribute__((warn_unused_result)) enum failure_code gpu_nvidia_ask_nvml(
    const char *library, struct gpu_list *out_list, struct failure *failure);

/* One device per file <dev_root>/nvidia<number>, of which nothing more is known. The caller clears
 * the result. */
struct gpu_list gpu_nvidia_count_files(const char *dev_root);

#endif
