/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads arbitrary bytes as a worker's error file. For an accepted file, the parent's copy must be
 * accepted, too, and must say the same. */
#include <stdlib.h>
#include <string.h>

#include "wire/failure/failure_json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct slice input = {data, size};
    struct error_file file;
    struct text reason = {0};
    if (error_file_json_read(input, &file, &reason) != FAILURE_NONE) {
        if (reason.length == 0) {
            abort();
        }
        text_clear(&reason);
        return 0;
    }
    struct text copy = {0};
    struct error_file again;
    if (error_file_json_write_for_parent(input, 3, &copy) != FAILURE_NONE) {
        abort();
    }
    if (copy.length >
        ERROR_FILE_JSON_MAXIMUM_SIZE) { /* escapes may make the copy longer than the limit */
        text_clear(&copy);
        error_file_clear(&file);
        return 0;
    }
    if (error_file_json_read(slice_from_string(text_string(&copy)), &again, NULL) != FAILURE_NONE ||
        strcmp(file.message, again.message) != 0 || file.timestamp != again.timestamp) {
        abort();
    }
    text_clear(&copy);
    error_file_clear(&again);
    error_file_clear(&file);
    return 0;
}
