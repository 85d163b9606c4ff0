/* SPDX-License-Identifier: BSD-3-Clause */
/* What workers import, as a worker of this node records it and as another node tells it. The input
 * is both, with a NUL byte between them. */
#include <string.h>

#include "core/standby/standby_preparation.h"
#include "fuzz_input.h"

static bool has_byte(struct slice bytes, int byte) {
    return bytes.length > 0 && memchr(bytes.data, byte, bytes.length) != NULL;
}

/* Of a variable of the environment: a word of the list's own kind, or none. */
static void check_change(struct slice line, size_t mark) {
    struct slice value = slice_from(line, mark + 1);
    struct slice name = {line.data, mark};
    FUZZ_REQUIRE(line.data[mark] != '#');
    FUZZ_REQUIRE(value.length <= LEARNED_LIST_VALUE_MAXIMUM);
    FUZZ_REQUIRE(!has_byte(value, ' ') && !has_byte(value, '/') && !has_byte(value, '='));
    FUZZ_REQUIRE(has_byte(name, ' ') && !has_byte(name, '/'));
    FUZZ_REQUIRE(mark < 3 || memcmp(line.data + mark - 3, "PIN", 3) != 0);
}

static void check_lines(struct slice text) {
    while (text.length > 0) {
        const uint8_t *end = memchr(text.data, '\n', text.length);
        FUZZ_REQUIRE(end != NULL);
        struct slice line = {text.data, (size_t)(end - text.data)};
        size_t mark = 0;
        while (mark < line.length && strchr("\t#!", line.data[mark]) == NULL) {
            mark++;
        }
        FUZZ_REQUIRE(mark > 0 && mark < line.length);
        FUZZ_REQUIRE(line.data[0] == '=' || !has_byte((struct slice){line.data, mark}, '/'));
        if (line.data[0] == '=') {
            check_change(line, mark);
        }
        text = slice_from(text, line.length + 1);
    }
}

static void check_list(const struct learned_list *list) {
    struct learned_list again;
    learned_list_init(&again);
    FUZZ_REQUIRE(learned_list_count(list) <= LEARNED_LIST_LINES_MAXIMUM);
    FUZZ_REQUIRE(learned_list_text(list).length <= LEARNED_LIST_TEXT_MAXIMUM);
    check_lines(learned_list_text(list));
    /* What was fit is, in the same place. */
    learned_list_add_text(&again, learned_list_text(list));
    FUZZ_REQUIRE(slice_equals(learned_list_text(list), learned_list_text(&again)));
    learned_list_clear(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct learned_list list;
    const uint8_t *between = size == 0 ? NULL : memchr(data, '\0', size);
    size_t length = between == NULL ? 0 : (size_t)(between - data);
    struct slice recorded = {data, length};
    struct slice told = slice_from((struct slice){data, size}, length);
    learned_list_init(&list);
    size_t count = learned_list_add_told(&list, told);
    FUZZ_REQUIRE(count == learned_list_count(&list));
    check_list(&list);
    (void)learned_list_add_text(&list, recorded);
    check_list(&list);
    FUZZ_REQUIRE(learned_list_add_told(&list, told) == 0);
    learned_list_clear(&list);
    return 0;
}
