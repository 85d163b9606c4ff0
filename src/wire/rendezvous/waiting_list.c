/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/rendezvous/waiting_list.h"

#include <string.h>

#include "base/utf8.h"

static bool is_line(struct slice run_id) {
    for (size_t i = 0; i < run_id.length; i++) {
        if (run_id.data[i] < ' ' || run_id.data[i] == 0x7f) {
            return false;
        }
    }
    return run_id.length > 0 && run_id.length <= WAITING_LIST_ID_BYTES &&
           utf8_is_python_text(run_id.data, run_id.length);
}

/* Takes the last line off the list. Returns false when there is none left. */
static bool take_last(struct slice *list, struct slice *out_line) {
    if (list->length == 0) {
        return false;
    }
    size_t end = list->length;
    if (list->data[end - 1] == '\n') {
        end--;
    }
    size_t start = end;
    while (start > 0 && list->data[start - 1] != '\n') {
        start--;
    }
    *out_line = (struct slice){list->data + start, end - start};
    list->length = start;
    return true;
}

/* What is beyond the limit is nothing that an agent has written. */
static struct slice bounded(struct slice list) {
    return list.length <= WAITING_LIST_BYTES ? list : (struct slice){0};
}

static bool has_line(struct slice list, struct slice run_id) {
    struct slice line;
    while (take_last(&list, &line)) {
        if (slice_equals(line, run_id)) {
            return true;
        }
    }
    return false;
}

bool waiting_list_add(struct slice list, const char *run_id, struct text *out_list) {
    struct slice own = slice_from_string(run_id);
    struct slice kept = bounded(list);
    if (!is_line(own) || has_line(kept, own)) {
        return false;
    }
    while (kept.length > 0 && kept.length + own.length + 2 > WAITING_LIST_BYTES) {
        const uint8_t *end = memchr(kept.data, '\n', kept.length);
        kept = slice_from(kept, end == NULL ? kept.length : (size_t)(end - kept.data) + 1);
    }
    text_append_bytes(out_list, (const char *)kept.data, kept.length);
    if (kept.length > 0 && kept.data[kept.length - 1] != '\n') {
        text_append(out_list, "\n");
    }
    text_append_format(out_list, "%s\n", run_id);
    return true;
}

static bool is_listed(const struct text_list *run_ids, struct slice run_id) {
    for (size_t i = 0; i < run_ids->count; i++) {
        if (slice_equals(slice_from_string(run_ids->items[i]), run_id)) {
            return true;
        }
    }
    return false;
}

void waiting_list_read(
    struct slice list, const char *run_id, size_t maximum, struct text_list *out_run_ids) {
    struct slice own = slice_from_string(run_id);
    struct slice rest = bounded(list);
    struct slice line;
    while (out_run_ids->count < maximum && take_last(&rest, &line)) {
        if (is_line(line) && !slice_equals(line, own) && !is_listed(out_run_ids, line)) {
            text_list_add_taken(
                out_run_ids, text_format("%.*s", (int)line.length, (const char *)line.data));
        }
    }
}
