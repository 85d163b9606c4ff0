/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads arbitrary bytes as the list of the jobs that wait at a store. What an agent writes in its
 * place is within the limit, and names that agent's job and no fewer of the latest ones. */
#include "fuzz_input.h"
#include "wire/rendezvous/job_notes.h"

#define JOBS 3

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct slice list = {data, size};
    struct text longer = {0};
    struct text_list before = {0};
    struct text_list after = {0};
    waiting_list_read(list, "job", JOBS, &before);
    FUZZ_REQUIRE(before.count <= JOBS);
    if (waiting_list_add(list, "job", &longer)) {
        FUZZ_REQUIRE(longer.length <= WAITING_LIST_BYTES);
        struct slice written = {(const uint8_t *)longer.data, longer.length};
        waiting_list_read(written, "other", 1, &after);
        FUZZ_REQUIRE(after.count == 1 && text_equals(after.items[0], "job"));
    }
    text_list_clear(&after);
    text_list_clear(&before);
    text_clear(&longer);
    return 0;
}
