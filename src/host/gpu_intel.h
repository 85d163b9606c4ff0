/* SPDX-License-Identifier: BSD-3-Clause */
/* Intel's GPUs: render nodes of vendor 0x8086 whose kernel driver computes (i915, xe). As
 * torch.xpu does, processors' integrated graphics count only where there is no other. */
#ifndef MUSTER_HOST_GPU_INTEL_H
#define MUSTER_HOST_GPU_INTEL_H

#include "host/gpu_list.h"

/* By the number of their render node; without UUIDs. The caller clears the result. */
struct gpu_list gpu_intel_list(const char *dev_root, const char *sys_root);

#endif
