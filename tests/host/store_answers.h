/* SPDX-License-Identifier: BSD-3-Clause */
/* Stores the answer to a request, for tests. */
#ifndef MUSTER_TESTS_HOST_STORE_ANSWERS_H
#define MUSTER_TESTS_HOST_STORE_ANSWERS_H

#include <stdio.h>

#include "unit.h"

#include "host/store/store_client.h"

struct store_answer {
    int calls;
    enum failure_code code;
    struct store_reply reply; /* its bytes are in `text` */
    char text[512];           /* the reply's blob, or the message */
};

static inline void store_answer_remember(void *context, const struct store_client_result *result) {
    struct store_answer *answer = context;
    answer->calls++;
    answer->code = result->code;
    if (result->code != FAILURE_NONE) {
        (void)snprintf(answer->text, sizeof answer->text, "%s", result->message);
        return;
    }
    answer->reply = *result->reply;
    if (result->reply->kind == STORE_REPLY_BLOB) {
        struct slice blob = result->reply->blob;
        assert_true(blob.length < sizeof answer->text);
        if (blob.length > 0) {
            memcpy(answer->text, blob.data, blob.length);
        }
        answer->text[blob.length] = '\0';
    }
}

#endif
