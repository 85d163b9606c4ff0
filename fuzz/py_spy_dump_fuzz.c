/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads arbitrary bytes as a dump of py-spy. A place that is found must have both its parts, and
 * must not be longer than the input. */
#include <stdlib.h>
#include <string.h>

#include "fuzz_input.h"
#include "wire/failure/python_stack.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *place = py_spy_dump_place((struct slice){data, size}, 4711);
    if (place != NULL) {
        FUZZ_REQUIRE(strlen(place) <= size);
        free(place);
    }
    return 0;
}
