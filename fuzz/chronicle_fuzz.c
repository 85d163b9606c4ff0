/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads arbitrary bytes as a file of a chronicle's entries. What is accepted keeps its limits and
 * survives being written and read again; and what follows from all of it has phases and an account
 * that add up. */
#include <string.h>

#include "fuzz_input.h"
#include "wire/telling/chronicle_json.h"

static void take_line(struct slice line, struct chronicle_status *status) {
    struct chronicle_entry entry;
    struct chronicle_entry again;
    struct text text = {0};
    struct text second = {0};
    if (chronicle_json_read_entry(line, &entry) != FAILURE_NONE) {
        return;
    }
    chronicle_json_write_entry(&entry, &text);
    FUZZ_REQUIRE(text.length <= CHRONICLE_LINE_MAXIMUM);
    FUZZ_REQUIRE(strcspn(text_string(&text), "\n\x1b\x7f") == text.length - 1);
    FUZZ_REQUIRE(
        chronicle_json_read_entry(slice_from_string(text_string(&text)), &again) == FAILURE_NONE);
    chronicle_json_write_entry(&again, &second);
    FUZZ_REQUIRE(strcmp(text_string(&text), text_string(&second)) == 0);
    chronicle_status_take(status, &entry);
    chronicle_entry_clear(&entry);
    chronicle_entry_clear(&again);
    text_clear(&text);
    text_clear(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct slice rest = {data, size};
    struct chronicle_status status = {0};
    struct text told = {0};
    int64_t sum = 0;
    while (rest.length > 0) {
        const uint8_t *end = memchr(rest.data, '\n', rest.length);
        size_t length = end == NULL ? rest.length : (size_t)(end - rest.data);
        take_line((struct slice){rest.data, length}, &status);
        rest = slice_from(rest, end == NULL ? length : length + 1);
    }
    for (int state = 0; state < JOB_ENDED; state++) {
        sum += status.account.states[state].nanoseconds;
    }
    FUZZ_REQUIRE(sum == chronicle_status_wall(&status).nanoseconds);
    chronicle_json_write_status(&status, &(struct chronicle_view){.has_nodes = true}, &told);
    text_clear(&told);
    chronicle_status_clear(&status);
    return 0;
}
