/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads arbitrary bytes as a line of the watchdog's FIFO. A refused request must have a reason; an
 * accepted request must be valid as a timer. */
#include "fuzz_input.h"

#include "wire/watchdog/timer_request_json.h"

static void check_request(void *context, const struct watchdog_request *request) {
    (void)context;
    FUZZ_REQUIRE(request->pid > 0 && request->scope != NULL);
    if (request->kind == WATCHDOG_ACQUIRE) {
        FUZZ_REQUIRE(request->expiration.nanoseconds >= 0);
        FUZZ_REQUIRE(request->signal >= 0 && request->signal <= 64);
    }
}

static void check_refusal(void *context, const char *reason) {
    (void)context;
    FUZZ_REQUIRE(*reason != '\0');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const struct timer_request_visitor visitor = {check_request, check_refusal, NULL};
    timer_request_json_each((struct slice){data, size}, &visitor);
    return 0;
}
