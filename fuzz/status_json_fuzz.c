/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads arbitrary bytes as the answer of a job's host. What is accepted can be spelled, is one line
 * that may be shown, and is spelled the same after it was read again. */
#include <string.h>

#include "fuzz_input.h"
#include "wire/telling/chronicle_json.h"
#include "wire/telling/status_json.h"

static void write_status(const struct chronicle_status *status, struct text *out) {
    chronicle_json_write_status(status, &(struct chronicle_view){.has_nodes = true}, out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct chronicle_status status;
    struct chronicle_status again;
    struct status_seen seen;
    struct text first = {0};
    struct text second = {0};
    if (status_json_read((struct slice){data, size}, &status, &seen) != FAILURE_NONE) {
        return 0;
    }
    status_seen_clear(&seen);
    write_status(&status, &first);
    FUZZ_REQUIRE(strcspn(text_string(&first), "\n\x1b\x7f") == first.length - 1);
    FUZZ_REQUIRE(
        status_json_read(slice_from_string(text_string(&first)), &again, &seen) == FAILURE_NONE);
    write_status(&again, &second);
    FUZZ_REQUIRE(again.known_nodes == status.known_nodes);
    FUZZ_REQUIRE(again.recovery_count == status.recovery_count);
    status_seen_clear(&seen);
    chronicle_status_clear(&status);
    chronicle_status_clear(&again);
    text_clear(&first);
    text_clear(&second);
    return 0;
}
