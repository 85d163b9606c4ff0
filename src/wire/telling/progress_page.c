/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/telling/progress_page.h"

static struct instant time_in(uint64_t word) {
    return (struct instant){word <= INT64_MAX ? (int64_t)word : 0};
}

bool progress_page_read(
    const uint64_t words[PROGRESS_PAGE_WORDS], struct progress_sample *out_sample) {
    static const enum progress_word numbers[] = {PROGRESS_WORD_COUNT, PROGRESS_WORD_STEP,
        PROGRESS_WORD_FIRST_STEP, PROGRESS_WORD_SAVES, PROGRESS_WORD_SAVED_STEP};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        if (words[numbers[i]] > PROGRESS_STEP_MAXIMUM) {
            return false;
        }
    }
    if (words[PROGRESS_WORD_MARK] != PROGRESS_PAGE_MAGIC ||
        words[PROGRESS_WORD_SOURCE] >= PROGRESS_SOURCE_COUNT ||
        (words[PROGRESS_WORD_COUNT] > 0 && words[PROGRESS_WORD_SOURCE] == PROGRESS_NONE)) {
        return false;
    }
    *out_sample = (struct progress_sample){
        .source = (enum progress_source)words[PROGRESS_WORD_SOURCE],
        .count = (int64_t)words[PROGRESS_WORD_COUNT],
        .step = (int64_t)words[PROGRESS_WORD_STEP],
        .first_step = (int64_t)words[PROGRESS_WORD_FIRST_STEP],
        .stepped = time_in(words[PROGRESS_WORD_STEPPED]),
        .first = time_in(words[PROGRESS_WORD_FIRST]),
        .save_count = (int64_t)words[PROGRESS_WORD_SAVES],
        .saved_step = (int64_t)words[PROGRESS_WORD_SAVED_STEP],
        .saved = time_in(words[PROGRESS_WORD_SAVED]),
        .waited = {time_in(words[PROGRESS_WORD_WAITED]).nanoseconds},
        .waits_since = time_in(words[PROGRESS_WORD_WAITS]),
    };
    return true;
}
