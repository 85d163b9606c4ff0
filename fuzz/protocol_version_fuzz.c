/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads arbitrary bytes as the version of another agent's protocol. One that is accepted must be
 * written as the same bytes, and be described in one printable line. */
#include "fuzz_input.h"
#include "wire/rendezvous/job_notes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct protocol_version version;
    struct text text = {0};
    if (protocol_version_read((struct slice){data, size}, &version) != FAILURE_NONE) {
        return 0;
    }
    FUZZ_REQUIRE(version.number >= 1 && version.number <= PROTOCOL_VERSION_MAXIMUM);
    protocol_version_write(&version, &text);
    FUZZ_REQUIRE(slice_equals(slice_from_string(text_string(&text)), (struct slice){data, size}));
    protocol_version_describe(&version, &text);
    for (const char *at = text_string(&text); *at != '\0'; at++) {
        FUZZ_REQUIRE(*at >= ' ' && *at <= '~');
    }
    text_clear(&text);
    return 0;
}
