/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/standby/standby_preparation.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/utf8.h"

/* What follows the name in a line. */
#define LEARNED '\t'
#define LEFT_OUT '#'
#define TOLD '!'
/* What a line begins with that is of a variable. */
#define CHANGE '='
#define UNKNOWN "?"

/* Parts of the names of what may be a secret, however short. The hook has the same ones
 * (client/standby/muster_standby/record.py). */
static const char *const secrets[] = {"AUTH", "COOKIE", "CRED", "KEY", "OTP", "PASS", "PHRASE",
    "PIN", "PRIVATE", "PWD", "SALT", "SECRET", "TOKEN"};

void learned_list_init(struct learned_list *list) {
    *list = (struct learned_list){.names = table_new(NULL)};
}

void learned_list_clear(struct learned_list *list) {
    table_free(list->names);
    text_clear(&list->text);
    text_clear(&list->shared);
    *list = (struct learned_list){0};
}

/* What a line may hold. */

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

static bool is_letter_or_digit(uint8_t byte) {
    return text_is_digit(byte) || (byte >= 'A' && byte <= 'Z') || (byte >= 'a' && byte <= 'z');
}

static bool is_of_word(uint8_t byte) {
    return is_letter_or_digit(byte) || byte == '_';
}

/* Words that dots separate. A name leads to no other directory. */
static bool is_module(struct slice name) {
    bool is_between = false; /* two words */
    for (size_t i = 0; i < name.length; i++) {
        uint8_t byte = name.data[i];
        bool is_fit = byte == '.' ? is_between : is_of_word(byte) || byte == '-' || byte >= 0x80;
        if (!is_fit) {
            return false;
        }
        is_between = byte != '.';
    }
    return is_between;
}

/* NUMBER VARIABLE, without the sign in front. `out_variable` is where the latter begins. */
static bool is_change(struct slice name, size_t *out_variable) {
    size_t at = 0;
    while (at < name.length && text_is_digit(name.data[at])) {
        at++;
    }
    if (at == 0 || at + 1 >= name.length || name.data[at] != ' ') {
        return false;
    }
    *out_variable = ++at;
    while (at < name.length && is_of_word(name.data[at])) {
        at++;
    }
    struct slice variable = slice_from(name, *out_variable);
    return at == name.length || slice_equals(variable, slice_from_string(UNKNOWN));
}

static uint8_t lower(uint8_t byte) {
    return byte >= 'A' && byte <= 'Z' ? (uint8_t)(byte - 'A' + 'a') : byte;
}

/* In whatever case. */
static bool has_part(struct slice word, const char *part) {
    size_t length = strlen(part);
    for (size_t start = 0; start + length <= word.length; start++) {
        size_t same = 0;
        while (same < length && lower(word.data[start + same]) == lower((uint8_t)part[same])) {
            same++;
        }
        if (same == length) {
            return true;
        }
    }
    return false;
}

static bool may_be_secret(struct slice variable) {
    for (size_t i = 0; i < sizeof secrets / sizeof *secrets; i++) {
        if (has_part(variable, secrets[i])) {
            return true;
        }
    }
    return false;
}

/* A short word, or question marks alone. */
static bool is_value(struct slice value) {
    size_t letters = 0;
    size_t unknown = 0;
    for (size_t i = 0; i < value.length && value.length <= LEARNED_LIST_VALUE_MAXIMUM; i++) {
        letters += is_letter_or_digit(value.data[i]) ? 1 : 0;
        unknown += value.data[i] == *UNKNOWN ? 1 : 0;
    }
    return letters == value.length || unknown == value.length;
}

/* Whether it can be in the libraries of an interpreter, wherever that lies. */
static bool is_library(struct slice origin) {
    static const char *const directories[] = {
        "/site-packages/", "/dist-packages/", "/lib/python3", "/lib64/python3"};
    bool is_one = origin.length == 0 || slice_equals(origin, slice_from_string("built-in")) ||
                  slice_equals(origin, slice_from_string("frozen"));
    for (size_t i = 0; i < sizeof directories / sizeof *directories && !is_one; i++) {
        is_one = origin.data[0] == '/' && has_part(origin, directories[i]);
    }
    return is_one && !has_part(origin, "/../");
}

/* A line in its parts. */
struct line {
    struct slice name;
    char mark;
    struct slice rest; /* an origin or a value */
};

/* Without what may not be known. False: it is no line of a change. */
static bool make_change_fit(struct line *line, struct text *out_name) {
    size_t variable;
    struct slice name = slice_from(line->name, 1);
    if (line->mark == LEFT_OUT || !is_change(name, &variable)) {
        return false;
    }
    if (may_be_secret(slice_from(name, variable))) {
        text_append_bytes(out_name, (const char *)line->name.data, variable + 1);
        text_append(out_name, UNKNOWN);
        line->name = slice_from_string(text_string(out_name));
        line->rest = slice_from_string(UNKNOWN);
    } else if (!is_value(line->rest)) {
        line->rest = slice_from_string(UNKNOWN);
    }
    return true;
}

static bool is_fit(const struct line *line) {
    return is_plain(line->name, LEARNED_LIST_NAME_MAXIMUM) &&
           is_plain(line->rest, LEARNED_LIST_ORIGIN_MAXIMUM) &&
           (line->mark != TOLD || line->name.data[0] == CHANGE || is_library(line->rest));
}

/* What is in the list. */

/* NULL: there is no such line. The table keeps where in the text each origin begins, never 0. */
static char *origin_of(const struct learned_list *list, struct slice name) {
    uintptr_t at = (uintptr_t)table_get(list->names, name);
    return at == 0 ? NULL : list->text.data + at;
}

/* What two workers of this node tell differently is not known. What another node has told is, as
 * soon as a worker of this one tells the same. An empty value has no room for a question mark. */
static void compare(char *known, const struct line *line) {
    size_t length = strcspn(known, "\n");
    bool is_change = line->name.data[0] == CHANGE;
    bool is_same = slice_equals((struct slice){(const uint8_t *)known, length}, line->rest);
    if (line->mark != LEARNED || known[-1] == LEFT_OUT) {
        return;
    }
    if (is_same && (!is_change || length > 0)) {
        known[-1] = LEARNED;
    } else if (!is_same && is_change) {
        known[-1] = length > 0 ? LEARNED : TOLD;
        memset(known, *UNKNOWN, length);
    }
}

/* What comes after the last change that there is room for may depend on the next one. */
static bool has_room(struct learned_list *list, const struct line *line) {
    size_t room = LEARNED_LIST_TEXT_MAXIMUM - list->text.length;
    bool is_change = line->name.data[0] == CHANGE;
    if (is_change && list->changes == LEARNED_LIST_CHANGES_MAXIMUM) {
        list->is_full = true;
    }
    return !list->is_full && table_count(list->names) < LEARNED_LIST_LINES_MAXIMUM &&
           line->name.length + line->rest.length + 2 <= room;
}

static void append(struct learned_list *list, const struct line *line) {
    uintptr_t origin_at = list->text.length + line->name.length + 1;
    table_put(list->names, line->name, (void *)origin_at); /* a number, no address */
    text_append_bytes(&list->text, (const char *)line->name.data, line->name.length);
    text_append_bytes(&list->text, &line->mark, 1);
    text_append_bytes(&list->text, (const char *)line->rest.data, line->rest.length);
    text_append(&list->text, "\n");
    list->changes += line->name.data[0] == CHANGE ? 1 : 0;
}

static bool add_fit(struct learned_list *list, const struct line *line) {
    char *known = origin_of(list, line->name);
    if (known != NULL) {
        compare(known, line);
        if (line->mark == LEFT_OUT) {
            known[-1] = LEFT_OUT;
        }
        return false;
    }
    if (!is_fit(line) || !has_room(list, line)) {
        return false;
    }
    append(list, line);
    return true;
}

static bool add(struct learned_list *list, struct line line) {
    struct text name = {0};
    bool is_change = line.name.length > 0 && line.name.data[0] == CHANGE;
    bool may_be_added = is_change ? make_change_fit(&line, &name) : is_module(line.name);
    bool is_new = may_be_added && add_fit(list, &line);
    text_clear(&name);
    return is_new;
}

bool learned_list_leave_out(struct learned_list *list, struct slice name) {
    const char *known = name.length == 0 ? NULL : origin_of(list, name);
    bool is_new = known == NULL || known[-1] != LEFT_OUT;
    bool is_added = add(list, (struct line){name, LEFT_OUT, {0}});
    known = name.length == 0 ? NULL : origin_of(list, name);
    return is_added || (is_new && known != NULL && known[-1] == LEFT_OUT);
}

/* Texts. */

static bool is_mark(char byte) {
    return byte == LEARNED || byte == LEFT_OUT || byte == TOLD;
}

static size_t name_length(struct slice line) {
    size_t length = 0;
    while (length < line.length && !is_mark((char)line.data[length])) {
        length++;
    }
    return length;
}

/* Returns whether the module is new. */
static bool add_line(struct learned_list *list, struct slice line, char learned) {
    size_t length = name_length(line);
    if (length == line.length) {
        return false;
    }
    char mark = (char)line.data[length];
    return add(list, (struct line){{line.data, length}, mark == LEARNED ? learned : mark,
                         slice_from(line, length + 1)});
}

static size_t add_text(struct learned_list *list, struct slice text, char learned) {
    size_t added = 0;
    const uint8_t *end;
    while (text.length > 0 && (end = memchr(text.data, '\n', text.length)) != NULL) {
        struct slice line = {text.data, (size_t)(end - text.data)};
        added += add_line(list, line, learned) ? 1 : 0;
        text = slice_from(text, line.length + 1);
    }
    return added;
}

size_t learned_list_add_text(struct learned_list *list, struct slice text) {
    return add_text(list, text, LEARNED);
}

size_t learned_list_add_told(struct learned_list *list, struct slice text) {
    return text.length > LEARNED_LIST_SHARED_MAXIMUM ? 0 : add_text(list, text, TOLD);
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
            (void)add_line(list, line, LEARNED);
        }
        text = slice_from(text, line.length + 1);
    }
}

size_t learned_list_lines(const struct learned_list *list) {
    struct slice text = learned_list_text(list);
    const uint8_t *end;
    size_t count = 0;
    while (text.length > 0 && (end = memchr(text.data, '\n', text.length)) != NULL) {
        struct slice line = {text.data, (size_t)(end - text.data)};
        bool is_one = slice_starts_with(line, slice_from_string(LEARNED_LIST_LINE));
        count += is_one && line.data[name_length(line)] != LEFT_OUT ? 1 : 0;
        text = slice_from(text, line.length + 1);
    }
    return count;
}

size_t learned_list_count(const struct learned_list *list) {
    return table_count(list->names);
}

struct slice learned_list_text(const struct learned_list *list) {
    return (struct slice){(const uint8_t *)list->text.data, list->text.length};
}

static bool is_told(struct slice line) {
    size_t at = 0;
    while (!is_mark((char)line.data[at])) {
        at++;
    }
    return line.data[at] == TOLD;
}

/* Those of programs' lines, or all others, as far as there is room. */
static void share(struct learned_list *list, bool are_lines) {
    struct slice rest = learned_list_text(list);
    const uint8_t *end;
    while (rest.length > 0 && (end = memchr(rest.data, '\n', rest.length)) != NULL) {
        size_t length = (size_t)(end - rest.data) + 1;
        bool is_one = slice_starts_with(rest, slice_from_string(LEARNED_LIST_LINE)) == are_lines;
        if (is_one && list->shared.length + length > LEARNED_LIST_SHARED_MAXIMUM) {
            break;
        }
        if (is_one && !is_told(rest)) {
            text_append_bytes(&list->shared, (const char *)rest.data, length);
        }
        rest = slice_from(rest, length);
    }
}

struct slice learned_list_shared_text(struct learned_list *list) {
    text_clear(&list->shared);
    share(list, true);
    share(list, false);
    return slice_from_string(text_string(&list->shared));
}

/* Environment. */

/* The variable that tells a process what its descriptor 3 is. */
#define STANDBY_VARIABLE "MUSTER_STANDBY"

#define PATH_VARIABLE "PYTHONPATH"
#define ERROR_FILE_VARIABLE "TORCHELASTIC_ERROR_FILE"
#define MARK_VARIABLE "MUSTER_WORKER"

/* What worker_environment sets from the place of the node in a round. */
static const char *const round_names[] = {"RANK", "WORLD_SIZE", "GROUP_RANK", "GROUP_WORLD_SIZE",
    "ROLE_RANK", "ROLE_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RESTART_COUNT"};

static bool is_named(const char *entry, const char *name) {
    size_t length = strlen(name);
    return strncmp(entry, name, length) == 0 && entry[length] == '=';
}

static bool is_of_round(const char *entry) {
    for (size_t i = 0; i < sizeof round_names / sizeof *round_names; i++) {
        if (is_named(entry, round_names[i])) {
            return true;
        }
    }
    return false;
}

static bool is_said_to_another(const char *entry) {
    return is_named(entry, STANDBY_VARIABLE) || is_named(entry, PROGRESS_VARIABLE);
}

static void drop(struct text_list *environment, bool (*is_unwanted)(const char *entry)) {
    struct text_list kept = {0};
    for (size_t i = 0; i < environment->count; i++) {
        if (!is_unwanted(environment->items[i])) {
            text_list_add(&kept, environment->items[i]);
        }
    }
    text_list_clear(environment);
    *environment = kept;
}

static bool is_of_rank(const char *entry) {
    return is_named(entry, "LOCAL_RANK");
}

void standby_environment_drop_rank(struct text_list *environment) {
    drop(environment, is_of_rank);
}

void standby_environment_undress(struct text_list *environment) {
    if (text_list_variable(environment, STANDBY_VARIABLE) != NULL ||
        text_list_variable(environment, PROGRESS_VARIABLE) != NULL) {
        drop(environment, is_said_to_another);
    }
}

static const char *name_of_role(enum standby_role role) {
    static const char *const names[] = {
        [STANDBY_RECORD] = "record", [STANDBY_SPARE] = "spare", [STANDBY_ALONE] = "alone"};
    return names[role];
}

void standby_environment_dress(struct text_list *environment, const struct standby_dress *dress) {
    const char *path = text_list_variable(environment, PATH_VARIABLE);
    bool had_path = path != NULL;
    struct text value = {0};
    text_append_format(
        &value, "fd=3;role=%s;pythonpath=%d", name_of_role(dress->role), had_path ? 1 : 0);
    if (dress->evidence_signal != 0 && dress->hook_directory != NULL) {
        text_append_format(&value, ";signal=%d", dress->evidence_signal);
    }
    if (dress->role == STANDBY_SPARE) {
        text_append_format(&value, ";rest=%g%s", dress->rest, dress->is_alone ? ";alone=1" : "");
        drop(environment, is_of_round);
    }
    if (dress->parent_of != 0) {
        text_append_format(&value, ";parent=%d", dress->parent_of);
        standby_environment_drop_rank(environment);
    }
    if (dress->hook_directory != NULL) {
        path = text_list_variable(environment, PATH_VARIABLE);
        char *paths = path == NULL ? text_format("%s", dress->hook_directory)
                                   : text_format("%s:%s", dress->hook_directory, path);
        text_list_set_variable(environment, PATH_VARIABLE, paths);
        free(paths);
    }
    text_list_set_variable(environment, STANDBY_VARIABLE, text_string(&value));
    text_clear(&value);
}

/* The error file is another one in each attempt, and nothing reads its name early. A worker without
 * one has a mark in its place. */
static bool is_free_to_differ(const char *entry) {
    return is_of_round(entry) || is_named(entry, ERROR_FILE_VARIABLE) ||
           is_named(entry, MARK_VARIABLE);
}

static int compare_entries(const void *left, const void *right) {
    return strcmp(*(const char *const *)left, *(const char *const *)right);
}

/* Sorted, and borrowed from the list; the caller frees the array. */
static const char **list_lasting(const struct text_list *environment, size_t *out_count) {
    const char **entries = memory_allocate((environment->count + 1) * sizeof *entries);
    *out_count = 0;
    for (size_t i = 0; i < environment->count; i++) {
        if (!is_free_to_differ(environment->items[i])) {
            entries[(*out_count)++] = environment->items[i];
        }
    }
    qsort(entries, *out_count, sizeof *entries, compare_entries);
    return entries;
}

static const char *first_difference(
    const char **before, size_t before_count, const char **now, size_t now_count) {
    for (size_t i = 0; i < before_count && i < now_count; i++) {
        int order = strcmp(before[i], now[i]);
        if (order != 0) {
            return order < 0 ? before[i] : now[i];
        }
    }
    if (before_count == now_count) {
        return NULL;
    }
    return before_count > now_count ? before[now_count] : now[before_count];
}

const char *standby_environment_difference(
    const struct text_list *before, const struct text_list *now) {
    size_t before_count;
    size_t now_count;
    const char **old = list_lasting(before, &before_count);
    const char **new = list_lasting(now, &now_count);
    const char *difference = first_difference(old, before_count, new, now_count);
    free((void *)old);
    free((void *)new);
    return difference;
}
