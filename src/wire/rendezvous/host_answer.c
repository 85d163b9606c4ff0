/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/rendezvous/host_answer.h"

#include <inttypes.h>

#include "wire/json/json_document.h"

#define VERSION 1

void host_answer_clear(struct host_answer *answer) {
    host_place_clear(&answer->place);
    answer->term = 0;
}

void host_answer_write(const struct host_answer *answer, struct text *out) {
    text_append_format(out, "{\"muster_host\": %d, \"term\": %" PRId64, VERSION, answer->term);
    if (answer->place.names != NULL) {
        struct text place = {0};
        host_place_write(answer->place.port, answer->place.names, &place);
        text_append(out, ", \"place\": ");
        json_text_write(text_string(&place), out);
        text_clear(&place);
    }
    text_append(out, "}");
}

/* Handover word. */

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
