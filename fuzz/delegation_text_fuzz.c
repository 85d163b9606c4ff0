/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads arbitrary bytes as what a node and the host of the store say to each other: how a node that
 * delegates stands, what it wishes, and that the host leaves.
 * A wish that is accepted must survive being written and read again; a standing must be one that a
 * node can act on. */
#include <stdlib.h>
#include <string.h>

#include "fuzz_input.h"
#include "wire/rendezvous/delegation_text.h"
#include "wire/rendezvous/job_notes.h"

static void try_wish(const char *text) {
    struct rendezvous_wish wish;
    struct rendezvous_wish again;
    struct text written = {0};
    struct text written_again = {0};
    if (delegation_wish_read(text, &wish) != FAILURE_NONE) {
        return;
    }
    delegation_wish_write(&wish, &written);
    FUZZ_REQUIRE(delegation_wish_read(text_string(&written), &again) == FAILURE_NONE);
    delegation_wish_write(&again, &written_again);
    FUZZ_REQUIRE(text_equals(text_string(&written), text_string(&written_again)));
    text_clear(&written_again);
    text_clear(&written);
}

static void try_word(struct slice text) {
    enum handover_word word;
    if (handover_word_read(text, &word)) {
        FUZZ_REQUIRE(slice_equals(text, slice_from_string(handover_word_text(word))));
    }
}

static void try_standing(struct slice text) {
    struct delegation_standing standing;
    if (delegation_standing_read(text, &standing) != FAILURE_NONE) {
        return;
    }
    const struct rendezvous_state *state = &standing.state;
    FUZZ_REQUIRE(state->count <= 1);
    FUZZ_REQUIRE(rendezvous_state_participants(state) <= RENDEZVOUS_NODES_MAXIMUM);
    FUZZ_REQUIRE(state->round >= 0 && state->restarts >= 0);
    FUZZ_REQUIRE(standing.meeting.port == 0 ||
                 (standing.ranks.world_size > 0 && standing.meeting.address[0] != '\0'));
    FUZZ_REQUIRE(!standing.is_held || (rendezvous_state_is_ranked(state) && state->count == 1 &&
                                          standing.ranks.world_size == 0));
    if (state->count == 1 && state->nodes[0].is_participant && state->is_complete &&
        !state->crowd.has_gaps) {
        FUZZ_REQUIRE(state->nodes[0].rank < (int64_t)rendezvous_state_participants(state));
    }
    delegation_standing_clear(&standing);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = calloc(1, size + 1);
    if (text == NULL) {
        return 0;
    }
    if (size > 0) {
        memcpy(text, data, size);
    }
    try_wish(text);
    try_standing((struct slice){data, size});
    try_word((struct slice){data, size});
    free(text);
    return 0;
}
