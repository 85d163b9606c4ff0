/* SPDX-License-Identifier: BSD-3-Clause */
/* SipHash-2-4 (Aumasson, Bernstein 2012): a hash that nobody who does not know the key can make
 * collide. It keeps tables fast whose keys come from other machines. */
#ifndef MUSTER_BASE_KEYED_HASH_H
#define MUSTER_BASE_KEYED_HASH_H

#include <stdint.h>

#include "base/bytes.h"

uint64_t keyed_hash(const uint64_t key[2], struct slice bytes);

#endif
