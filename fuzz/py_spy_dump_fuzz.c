/* SPDX-License-Identifier: BSD-3-Clause */
/* A place has both its parts, and is no longer than what it was read from. */
#include <stdlib.h>
#include <string.h>

#include "fuzz_input.h"
#include "wire/py_spy_dump.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *place = py_spy_dump_place((struct slice){data, size}, 4711);
    if (place != NULL) {
        FUZZ_REQUIRE(strlen(place) <= size);
        free(place);
    }
    return 0;
}
