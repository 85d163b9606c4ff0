/* SPDX-License-Identifier: BSD-3-Clause */
/* AMD's GPUs, as the kernel's compute driver (KFD) shows them: nodes with SIMD units whose render
 * node exists under /dev. A container sees the render nodes that it was given. */
#ifndef MUSTER_HOST_MACHINE_GPU_AMD_H
#define MUSTER_HOST_MACHINE_GPU_AMD_H

#include "host/machine/gpu_list.h"

/* The GPUs in the driver's order; empty when there is no driver or no device. UUIDs are spelled as
 * AMD's runtime spells them, "GPU-" and 16 hexadecimal digits. The caller clears the result. */
struct gpu_list gpu_amd_list(const char *dev_root, const char *sys_root);

#endif
