/* SPDX-License-Identifier: BSD-3-Clause */
/* Arbitrary bytes as a line of the watchdog's FIFO: what is refused has a reason, what is accepted
 * can be a timer. */
#include "fuzz_input.h"

#include "wire/timer_request_json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct watchdog_request request;
    struct text reason = {0};
    if (timer_request_json_read((struct slice){data, size}, &request, &reason) != FAILURE_NONE) {
        FUZZ_REQUIRE(reason.length > 0);
        text_clear(&reason);
        return 0;
    }
    FUZZ_REQUIRE(reason.length == 0);
    FUZZ_REQUIRE(request.pid > 0 && request.scope != NULL);
    if (request.kind == WATCHDOG_ACQUIRE) {
        FUZZ_REQUIRE(request.expiration.nanoseconds >= 0);
        FUZZ_REQUIRE(request.signal >= 0 && request.signal <= 64);
    }
    watchdog_request_clear(&request);
    return 0;
}
