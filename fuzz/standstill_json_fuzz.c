/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads arbitrary bytes as what a node tells whose workers stand still, and as what the host says
 * then. What is accepted survives being written and read again, and is judged. */
#include <stdlib.h>
#include <string.h>

#include "fuzz_input.h"
#include "wire/telling/stacks_json.h"

/* As the only node of its job. */
static void judge(struct standstill *told) {
    struct job_hang_watch *watch = job_hang_watch_new();
    struct job_hang hang = {0};
    const struct chronicle_status status = {
        .state = JOB_TRAINING, .round = told->round, .node_count = 1};
    bool stands = told->silence.nanoseconds > 0 && told->places.count > 0;
    job_hang_watch_take(watch, told);
    FUZZ_REQUIRE(job_hang_watch_judge(watch, &status, &hang) == stands);
    if (stands) {
        struct job_hang again;
        struct text text = {0};
        job_hang_json_write(&hang, &text);
        FUZZ_REQUIRE(
            job_hang_json_read(slice_from_string(text_string(&text)), &again) == FAILURE_NONE);
        FUZZ_REQUIRE(again.rank == hang.rank && again.round == hang.round);
        job_hang_clear(&again);
        text_clear(&text);
    }
    job_hang_clear(&hang);
    job_hang_watch_free(watch);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const struct slice bytes = {data, size};
    struct standstill told;
    struct job_hang hang;
    if (standstill_json_read(bytes, &told) == FAILURE_NONE) {
        struct standstill again;
        struct text text = {0};
        standstill_json_write(&told, &text);
        FUZZ_REQUIRE(
            standstill_json_read(slice_from_string(text_string(&text)), &again) == FAILURE_NONE);
        FUZZ_REQUIRE(again.places.count <= told.places.count);
        standstill_clear(&again);
        text_clear(&text);
        judge(&told);
    }
    if (job_hang_json_read(bytes, &hang) == FAILURE_NONE) {
        FUZZ_REQUIRE(strpbrk(hang.what, "\n\x1b\x7f") == NULL);
        FUZZ_REQUIRE(strpbrk(hang.where, "\n\x1b\x7f") == NULL);
        job_hang_clear(&hang);
    }
    return 0;
}
