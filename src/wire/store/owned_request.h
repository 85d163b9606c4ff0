/* SPDX-License-Identifier: BSD-3-Clause */
/* A store request together with the keys and values it borrows, built piece by piece. The caller
 * decides what is asked; this module fills the fields that the operation needs. */
#ifndef MUSTER_WIRE_STORE_OWNED_REQUEST_H
#define MUSTER_WIRE_STORE_OWNED_REQUEST_H

#include <stdint.h>

#include "base/bytes.h"
#include "base/text.h"
#include "core/store/store_request.h"

/* A zeroed struct is valid and empty. */
struct owned_request {
    struct store_request request; /* valid after owned_request_finish; its keys are complete, send
                                     them as they are */
    struct text_list keys;
    struct text_list values;
    struct bytes expected; /* COMPARE_SET: any bytes; empty: the key must not exist yet */
    struct slice *key_slices;
    struct slice *value_slices;
};

/* Makes the request of the keys and values added so far; there must be at least one key. `number`
 * is for ADD. After this call nothing may be added. */
void owned_request_finish(
    struct owned_request *request, enum store_operation operation, int64_t number);
void owned_request_clear(struct owned_request *request);

#endif
