/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/rendezvous/handover_word.h"

static const char *const texts[HANDOVER_WORD_COUNT] = {
    [HANDOVER_NAMED] = "named",
    [HANDOVER_MOVED] = "moved",
};

const char *handover_word_text(enum handover_word word) {
    return texts[word];
}

bool handover_word_read(struct slice text, enum handover_word *out_word) {
    for (int word = 0; word < HANDOVER_WORD_COUNT; word++) {
        if (slice_equals(text, slice_from_string(texts[word]))) {
            *out_word = (enum handover_word)word;
            return true;
        }
    }
    return false;
}
