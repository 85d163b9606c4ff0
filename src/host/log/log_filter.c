/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/log/log_filter.h"

#include <stdlib.h>

#include "base/memory.h"
#include "core/workers/line_splitter.h"

#define GATHERED_SIZE ((size_t)64 * 1024)

enum failure_code log_filter_open(const char *path, const struct text_list *needles,
    struct log_filter **out_filter, struct failure *failure) {
    struct log_filter *filter = memory_allocate(sizeof *filter);
    enum failure_code code = log_file_open(path, &filter->file, failure);
    if (code != FAILURE_NONE) {
        free(filter);
        return code;
    }
    text_list_add_all(&filter->needles, needles);
    *out_filter = filter;
    return FAILURE_NONE;
}

void log_filter_free(struct log_filter *filter) {
    if (filter == NULL) {
        return;
    }
    log_file_close(&filter->file);
    text_list_clear(&filter->needles);
    bytes_clear(&filter->gathered);
    free(filter);
}

static void gather(struct log_filter *filter, struct slice bytes) {
    if (bytes_append(&filter->gathered, bytes.data, bytes.length) != FAILURE_NONE) {
        filter->file.lost += bytes.length; /* unreachable: the buffer has no ceiling */
    }
}

void log_filter_offer(
    struct log_filter *filter, const char *header, struct slice line, struct instant now) {
    if (!line_matches(line, &filter->needles)) {
        return;
    }
    gather(filter, slice_from_string(header));
    gather(filter, line);
    if (filter->gathered.length > GATHERED_SIZE) {
        log_filter_flush(filter, now);
    }
}

void log_filter_flush(struct log_filter *filter, struct instant now) {
    if (filter->gathered.length > 0) {
        log_file_append(&filter->file, bytes_slice(&filter->gathered), now);
        bytes_clear(&filter->gathered);
    }
}
