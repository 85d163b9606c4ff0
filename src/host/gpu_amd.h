/* SPDX-License-Identifier: BSD-3-Clause */
/* AMD's GPUs, as the kernel's compute driver (KFD) shows them: nodes with SIMD units whose render
 * node exists under /dev, which is what a container was given. */
#ifndef MUSTER_HOST_GPU_AMD_H
#define MUSTER_HOST_GPU_AMD_H

#include "host/gpu_list.h"

/* In the driver's order; empty when there is no driver or no device. UUIDs are spelled as AMD's
 * runtime does, "GPU-" and 16 hexadecimal digits. The caller clears the result. */
struct gpu_list gpu_amd_list(const char *dev_root, const char *sys_root);

#endif
