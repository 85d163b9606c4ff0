/* SPDX-License-Identifier: BSD-3-Clause */
/* A log for tests: keeps everything written to it. */
#ifndef MUSTER_TESTS_HOST_REMEMBERED_LOG_H
#define MUSTER_TESTS_HOST_REMEMBERED_LOG_H

#include <string.h>

#include "base/log.h"
#include "base/text.h"

struct remembered_log {
    struct log log;
    struct text text;
    int count;
};

static inline void remember_record(
    void *context, enum log_level level, const char *origin, const char *message) {
    (void)level;
    (void)origin;
    struct remembered_log *remembered = context;
    text_append(&remembered->text, message);
    text_append(&remembered->text, "\n");
    remembered->count++;
}

static inline void remembered_log_init(struct remembered_log *remembered) {
    *remembered = (struct remembered_log){
        .log = {.threshold = LOG_LEVEL_INFO, .write = remember_record, .context = remembered}};
}

static inline bool remembered_log_has(const struct remembered_log *remembered, const char *part) {
    return strstr(text_string(&remembered->text), part) != NULL;
}

#endif
