/* SPDX-License-Identifier: BSD-3-Clause */
/* Gives memory back to the system after much of it was freed. The C library keeps what lies between
 * pieces that are still in use, so a process would stay as large as it once was. The call walks
 * over all free memory, so it is made rarely: only when a good part was freed, and some time later.
 */
#ifndef MUSTER_HOST_STORE_MEMORY_RETURN_H
#define MUSTER_HOST_STORE_MEMORY_RETURN_H

#include <stddef.h>

#include "base/duration.h"
#include "host/loop/event_loop.h"

#define MEMORY_RETURN_LEAST_BYTES ((size_t)16 << 20)
#define MEMORY_RETURN_DELAY duration_from_milliseconds(500)

struct memory_return;

/* Never NULL. */
struct memory_return *memory_return_new(struct event_loop *loop, struct duration delay);
/* Accepts NULL. */
void memory_return_free(struct memory_return *memory_return);

/* So many bytes are in use now. Cheap. When this is a quarter less than the most since memory was
 * given back last, and MEMORY_RETURN_LEAST_BYTES less, memory is given back after the delay. */
void memory_return_note(struct memory_return *memory_return, size_t bytes);

/* How often memory was given back. */
size_t memory_return_count(const struct memory_return *memory_return);

#endif
