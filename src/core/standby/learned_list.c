/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/standby/learned_list.h"

#include <string.h>

#include "base/utf8.h"

/* What follows the name in a line. */
#define LEARNED '\t'
#define LEFT_OUT '#'
/* What a line begins with that is of a variable. */
#define CHANGE '='
#define UNKNOWN '?'

void learned_list_init(struct learned_list *list) {
    *list = (struct learned_list){.names = table_new(NULL)};
}

void learned_list_clear(struct learned_list *list) {
    table_free(list->names);
    text_clear(&list->text);
    *list = (struct learned_list){0};
}

/* UTF-8 without control characters. */
static bool is_plain(struct slice word, size_t maximum) {
    size_t at = 0;
    if (word.length > maximum) {
        return false;
    }
    while (at < word.length) {
        size_t length = utf8_character_length(word.data + at, word.length - at);
        if (length == 0 || word.data[at] < 0x20 || word.data[at] == 0x7F) {
            return false;
        }
        at += length;
    }
    return true;
}

/* NULL: there is no such line. The table keeps where in the text each origin begins, never 0. */
static char *origin_of(const struct learned_list *list, struct slice name) {
    uintptr_t at = (uintptr_t)table_get(list->names, name);
    return at == 0 ? NULL : list->text.data + at;
}

/* What is different in the environments of two workers is not known. */
static void compare_change(char *old, struct slice value) {
    size_t length = strcspn(old, "\n");
    if (!slice_equals((struct slice){(const uint8_t *)old, length}, value)) {
        memset(old, UNKNOWN, length);
    }
}

bool learned_list_add(struct learned_list *list, struct slice name, struct slice origin) {
    size_t room = LEARNED_LIST_TEXT_MAXIMUM - list->text.length;
    char *known = origin_of(list, name);
    if (known != NULL && name.data[0] == CHANGE) {
        compare_change(known, origin);
    }
    if (known != NULL || name.length == 0 || !is_plain(name, LEARNED_LIST_NAME_MAXIMUM) ||
        !is_plain(origin, LEARNED_LIST_ORIGIN_MAXIMUM) || name.length + origin.length + 2 > room) {
        return false;
    }
    uintptr_t origin_at = list->text.length + name.length + 1;
    table_put(list->names, name, (void *)origin_at); /* a number, no address */
    text_append_bytes(&list->text, (const char *)name.data, name.length);
    text_append(&list->text, "\t");
    text_append_bytes(&list->text, (const char *)origin.data, origin.length);
    text_append(&list->text, "\n");
    return true;
}

bool learned_list_leave_out(struct learned_list *list, struct slice name) {
    bool is_change = name.length > 0 && name.data[0] == CHANGE;
    if (is_change ||
        (origin_of(list, name) == NULL && !learned_list_add(list, name, (struct slice){0}))) {
        return false;
    }
    char *mark = origin_of(list, name) - 1;
    bool is_new = *mark != LEFT_OUT;
    *mark = LEFT_OUT;
    return is_new;
}

static size_t name_length(struct slice line) {
    size_t length = 0;
    while (length < line.length && line.data[length] != LEARNED && line.data[length] != LEFT_OUT) {
        length++;
    }
    return length;
}

/* Returns whether the module is new. */
static bool add_line(struct learned_list *list, struct slice line) {
    size_t length = name_length(line);
    if (length == line.length) {
        return false;
    }
    struct slice name = {line.data, length};
    bool is_new = learned_list_add(list, name, slice_from(line, length + 1));
    if (line.data[length] == LEFT_OUT && origin_of(list, name) != NULL) {
        (void)learned_list_leave_out(list, name);
    }
    return is_new;
}

size_t learned_list_add_text(struct learned_list *list, struct slice text) {
    size_t added = 0;
    const uint8_t *end;
    while (text.length > 0 && (end = memchr(text.data, '\n', text.length)) != NULL) {
        struct slice line = {text.data, (size_t)(end - text.data)};
        added += add_line(list, line) ? 1 : 0;
        text = slice_from(text, line.length + 1);
    }
    return added;
}

static bool all_have(
    const struct learned_list *const *lists, size_t count, struct slice name, bool is_learned) {
    bool has = true;
    for (size_t i = 1; i < count && is_learned && name.length > 0 && name.data[0] != CHANGE; i++) {
        has = has && origin_of(lists[i], name) != NULL;
    }
    return has;
}

void learned_list_add_common(
    struct learned_list *list, const struct learned_list *const *lists, size_t count) {
    struct slice text = learned_list_text(lists[0]);
    const uint8_t *end;
    while (text.length > 0 && (end = memchr(text.data, '\n', text.length)) != NULL) {
        struct slice line = {text.data, (size_t)(end - text.data)};
        struct slice name = {line.data, name_length(line)};
        bool is_learned = name.length < line.length && line.data[name.length] == LEARNED;
        if (all_have(lists, count, name, is_learned)) {
            (void)add_line(list, line);
        }
        text = slice_from(text, line.length + 1);
    }
}

size_t learned_list_count(const struct learned_list *list) {
    return table_count(list->names);
}

struct slice learned_list_text(const struct learned_list *list) {
    return (struct slice){(const uint8_t *)list->text.data, list->text.length};
}

struct slice learned_list_shared_text(const struct learned_list *list) {
    struct slice text = learned_list_text(list);
    if (text.length > LEARNED_LIST_SHARED_MAXIMUM) {
        text.length = LEARNED_LIST_SHARED_MAXIMUM;
        while (text.length > 0 && text.data[text.length - 1] != '\n') {
            text.length--;
        }
    }
    return text;
}
