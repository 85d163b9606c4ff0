/* SPDX-License-Identifier: BSD-3-Clause */
/* The page in memory by which a worker tells of its steps, as include/muster/progress.h lays it
 * out. The worker may write anything into it at any time. */
#ifndef MUSTER_WIRE_TELLING_PROGRESS_PAGE_H
#define MUSTER_WIRE_TELLING_PROGRESS_PAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/telling/progress_watch.h"

/* A worker inherits it as this one. */
#define PROGRESS_DESCRIPTOR "3"
#define PROGRESS_PAGE_SIZE 4096
#define PROGRESS_PAGE_OFFSET 2048
#define PROGRESS_PAGE_MAGIC UINT64_C(0x3153534552474f52)

enum progress_word {
    PROGRESS_WORD_MARK,
    PROGRESS_WORD_AGENT,
    PROGRESS_WORD_WORKER,
    PROGRESS_WORD_COUNT,
    PROGRESS_WORD_STEP,
    PROGRESS_WORD_STEPPED,
    PROGRESS_WORD_FIRST_STEP,
    PROGRESS_WORD_FIRST,
    PROGRESS_WORD_SOURCE,
    PROGRESS_WORD_SAVES,
    PROGRESS_WORD_SAVED_STEP,
    PROGRESS_WORD_SAVED,
    PROGRESS_WORD_WAITED,
    PROGRESS_WORD_WAITS,
    PROGRESS_PAGE_WORDS,
};

/* `words` is a copy of the page's. False: it has not what a worker writes. */
bool progress_page_read(
    const uint64_t words[PROGRESS_PAGE_WORDS], struct progress_sample *out_sample);

#endif
