/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads arbitrary bytes as the shared record, as a bare pickle and as the store's base64. An
 * accepted record must be the same after writing and reading. A refused one must have a reason and
 * change nothing. The public header takes the same records, and shows each of their nodes. */
#include "fuzz_input.h"

#include <muster/rendezvous_state.h>

#include "wire/rendezvous/rendezvous_state_pickle.h"

static void write_and_read_again(const struct rendezvous_state *state) {
    struct bytes text = {0};
    struct bytes text_again = {0};
    struct text reason = {0};
    struct rendezvous_state again = {0};
    bool is_absent = true;
    FUZZ_REQUIRE(rendezvous_state_write_text(state, &text) == FAILURE_NONE);
    FUZZ_REQUIRE(rendezvous_state_read_text(bytes_slice(&text), &is_absent, &again, &reason) ==
                 FAILURE_NONE);
    FUZZ_REQUIRE(!is_absent && rendezvous_state_write_text(&again, &text_again) == FAILURE_NONE);
    FUZZ_REQUIRE(slice_equals(bytes_slice(&text), bytes_slice(&text_again)));
    bytes_clear(&text_again);
    rendezvous_state_clear(&again);
    bytes_clear(&text);
}

static void check(enum failure_code code, struct rendezvous_state *state, struct text *reason) {
    if (code == FAILURE_NONE) {
        FUZZ_REQUIRE(reason->length == 0);
        write_and_read_again(state);
    } else {
        FUZZ_REQUIRE(reason->length > 0);
        FUZZ_REQUIRE(state->count == 0 && state->round == -1);
    }
    rendezvous_state_clear(state);
    text_clear(reason);
}

static size_t shown_nodes(const struct muster_rendezvous_state *state) {
    size_t listed = 0;
    for (size_t i = 0; i < state->node_count; i++) {
        const struct muster_rendezvous_node *node = &state->nodes[i];
        FUZZ_REQUIRE(node->addr != NULL && (node->is_participant || node->rank == -1));
        listed += (size_t)(node->is_participant + node->is_waiting + node->is_redundant);
    }
    FUZZ_REQUIRE(
        listed == state->participant_count + state->waiting_count + state->redundant_count);
    return state->node_count;
}

static void show(struct slice input, bool is_record, size_t nodes) {
    static const uint8_t nothing = 0;
    struct muster_rendezvous_state *state = NULL;
    enum muster_error error = muster_rendezvous_state_read(
        input.length > 0 ? input.data : &nothing, input.length, &state, NULL);
    FUZZ_REQUIRE((error == MUSTER_OK) == is_record && (state != NULL) == is_record);
    FUZZ_REQUIRE(state == NULL || shown_nodes(state) == nodes);
    muster_rendezvous_state_free(state);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct slice input = {data, size};
    struct text reason = {0};
    bool is_absent;
    struct rendezvous_state state = {.round = -1};
    enum failure_code code = rendezvous_state_read_pickle(input, &state, &reason);
    show(input, code == FAILURE_NONE, state.count);
    check(code, &state, &reason);
    state.round = -1;
    check(rendezvous_state_read_text(input, &is_absent, &state, &reason), &state, &reason);
    return 0;
}
