/* SPDX-License-Identifier: BSD-3-Clause */
/* Gives each line of the input to every reader of the kernel's tables. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/text.h"
#include "wire/failure/kernel_text.h"
#include "wire/failure/python_stack.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int condition) {
    if (!condition) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct slice rest = {data, size};
    struct slice line;
    while (socket_table_next_line(&rest, &line)) {
        struct text words = {0};
        uint64_t inode;
        require(line.data >= data && line.data + line.length <= data + size);
        if (socket_table_read_address(line, true, &inode, &words) != FAILURE_NONE) {
            require(words.length == 0);
        }
        (void)!socket_table_read_address(line, false, &inode, &words);
        (void)!socket_table_read_unix(line, &inode, &words);
        text_clear(&words);
        struct memory_mapping mapping;
        if (memory_map_read_line(line, &mapping) == FAILURE_NONE) {
            require(mapping.start < mapping.end);
            require(mapping.path.data + mapping.path.length == line.data + line.length);
            memory_mapping_is_file(&mapping, "libpython");
        }
    }
    return 0;
}
