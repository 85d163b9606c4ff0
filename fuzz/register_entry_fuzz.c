/* SPDX-License-Identifier: BSD-3-Clause */
/* Arbitrary bytes as an entry of a job's register. An accepted entry must survive being written and
 * read again. */
#include "fuzz_input.h"
#include "wire/register/register_entry_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct register_entry entry;
    struct register_entry again;
    struct text text = {0};
    struct text reason = {0};
    if (register_entry_read((struct slice){data, size}, &entry, &reason) != FAILURE_NONE) {
        FUZZ_REQUIRE(reason.length > 0);
        text_clear(&reason);
        return 0;
    }
    FUZZ_REQUIRE(register_entry_check(&entry) == FAILURE_NONE);
    register_entry_write(&entry, &text);
    FUZZ_REQUIRE(
        register_entry_read(slice_from_string(text_string(&text)), &again, NULL) == FAILURE_NONE);
    FUZZ_REQUIRE(entry.number == again.number && text_equals(entry.nonce, again.nonce));
    FUZZ_REQUIRE(text_equals(entry.host, again.host));
    FUZZ_REQUIRE(slice_equals(bytes_slice(&entry.record), bytes_slice(&again.record)));
    register_entry_clear(&entry);
    register_entry_clear(&again);
    text_clear(&text);
    return 0;
}
