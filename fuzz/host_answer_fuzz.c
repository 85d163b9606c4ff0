/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads arbitrary bytes as another node's word about who hosts the job's store. An answer that is
 * accepted must survive being written and read again. */
#include <string.h>

#include "fuzz_input.h"
#include "wire/rendezvous/host_answer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct host_answer answer;
    struct host_answer again;
    struct text text = {0};
    if (host_answer_read((struct slice){data, size}, &answer) != FAILURE_NONE) {
        return 0;
    }
    host_answer_write(&answer, &text);
    FUZZ_REQUIRE(host_answer_read(slice_from_string(text_string(&text)), &again) == FAILURE_NONE);
    FUZZ_REQUIRE(again.term == answer.term && again.place.port == answer.place.port);
    FUZZ_REQUIRE((again.place.names == NULL) == (answer.place.names == NULL));
    FUZZ_REQUIRE(answer.place.names == NULL || strcmp(again.place.names, answer.place.names) == 0);
    host_answer_clear(&answer);
    host_answer_clear(&again);
    text_clear(&text);
    return 0;
}
