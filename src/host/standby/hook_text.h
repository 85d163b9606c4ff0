/* SPDX-License-Identifier: BSD-3-Clause */
/* The text of the hook (client/standby/sitecustomize.py) as part of this program: the build makes
 * the source of it. */
#ifndef MUSTER_HOST_STANDBY_HOOK_TEXT_H
#define MUSTER_HOST_STANDBY_HOOK_TEXT_H

#include <stddef.h>
#include <stdint.h>

extern const uint8_t hook_text[];
extern const size_t hook_text_length;

#endif
