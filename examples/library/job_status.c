/* SPDX-License-Identifier: BSD-3-Clause */
/* A program that says how the rendezvous of a job stands, Muster's or torchrun's, with libmuster:
 *
 *     ./job_status node0 29400 JOB
 *
 * Its status is 0 when the round is complete, and nobody waits for another one. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <muster/rendezvous_state.h>

static int show(const struct muster_rendezvous_state *state) {
    printf("round %" PRId64 ": %zu nodes take part, %zu wait, %zu are spares\n", state->round,
        state->participant_count, state->waiting_count, state->redundant_count);
    for (size_t i = 0; i < state->node_count; i++) {
        if (state->nodes[i].rank >= 0) {
            printf("rank %" PRId64 ": %s\n", state->nodes[i].rank, state->nodes[i].addr);
        }
    }
    return state->is_complete && state->waiting_count == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int argument_count, char **arguments) {
    struct muster_tcp_store_settings settings = MUSTER_TCP_STORE_SETTINGS;
    struct muster_store *store = NULL;
    struct muster_rendezvous_state *state = NULL;
    struct muster_failure failure;
    int status = EXIT_FAILURE;
    if (argument_count != 4) {
        fprintf(stderr, "usage: job_status HOST PORT JOB\n");
        return 2;
    }
    settings.host = arguments[1];
    settings.port = atoi(arguments[2]);
    settings.timeout = 10;
    if (muster_store_new_tcp(&settings, &store, &failure) != MUSTER_OK ||
        muster_rendezvous_state_get(store, arguments[3], &state, &failure) != MUSTER_OK) {
        fprintf(stderr, "job_status: %s\n", failure.message);
    } else {
        status = show(state);
    }
    muster_rendezvous_state_free(state);
    muster_store_free(store);
    return status;
}
