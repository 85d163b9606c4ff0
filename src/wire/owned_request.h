/* SPDX-License-Identifier: BSD-3-Clause */
/* A store request together with the keys and values it borrows, put together piece by piece. What
 * is asked is the caller's business; which fields an operation fills is here. */
#ifndef MUSTER_WIRE_OWNED_REQUEST_H
#define MUSTER_WIRE_OWNED_REQUEST_H

#include <stdint.h>

#include "base/text.h"
#include "core/store_request.h"

/* A zeroed struct is valid and empty. */
struct owned_request {
    struct store_request request; /* once finished; keys as on the wire: send them as they are */
    struct text_list keys;
    struct text_list values;
    struct slice *key_slices;
    struct slice *value_slices;
};

/* Makes the request of the keys and values added so far, at least one key; `number` is for ADD. Add
 * nothing afterwards. */
void owned_request_finish(
    struct owned_request *request, enum store_operation operation, int64_t number);
void owned_request_clear(struct owned_request *request);

#endif
