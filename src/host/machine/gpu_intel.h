/* SPDX-License-Identifier: BSD-3-Clause */
/* Intel's GPUs: render nodes of vendor 0x8086 whose kernel driver can compute (i915, xe). As in
 * torch.xpu, the integrated graphics of a processor counts only when there is no other GPU. */
#ifndef MUSTER_HOST_MACHINE_GPU_INTEL_H
#define MUSTER_HOST_MACHINE_GPU_INTEL_H

#include "host/machine/gpu_list.h"

/* The GPUs in the order of their render nodes' numbers, without UUIDs. The caller clears the
 * result. */
struct gpu_list gpu_intel_list(const char *dev_root, const char *sys_root);

#endif
