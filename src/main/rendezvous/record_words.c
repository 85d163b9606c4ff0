/* SPDX-License-Identifier: BSD-3-Clause */
#include "main/rendezvous/record_words.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "base/utf8.h"
#include "core/workers/signal_name.h"

static void write_time(double time, time_t now, struct text *out) {
    char date[32] = "";
    time_t seconds = (time_t)time;
    int64_t ahead = (int64_t)seconds - (int64_t)now;
    struct tm parts;
    if (gmtime_r(&seconds, &parts) != NULL) {
        strftime(date, sizeof date, "%Y-%m-%d %H:%M:%S UTC", &parts);
    }
    text_append_format(out, "%s (%s%" PRId64 " s%s)", date, ahead > 0 ? "in " : "",
        ahead > 0 ? ahead : -ahead, ahead > 0 ? "" : " ago");
}

static void write_printable(const char *text, struct text *out) {
    char *printable = text_format("%s", text);
    utf8_make_line_printable(printable);
    text_append(out, printable);
    free(printable);
}

static void write_node(const struct muster_rendezvous_node *node, time_t now, struct text *out) {
    write_printable(node->addr, out);
    text_append_format(out, ", process %" PRId64, node->pid);
    text_append(out, node->is_muster ? "" : ", torchrun's");
    if (node->last_heartbeat != 0) {
        text_append(out, ", last heartbeat ");
        write_time(node->last_heartbeat, now, out);
    }
    text_append(out, "\n");
}

static void write_reason(const struct muster_rendezvous_state *state, struct text *out) {
    if (state->reason[0] != '\0') {
        text_append(out, state->is_closed ? "closed because: " : "begun because: ");
        write_printable(state->reason, out);
        text_append(out, "\n");
    }
}

static void write_phase(const struct muster_rendezvous_state *state, time_t now, struct text *out) {
    text_append_format(out, "round %" PRId64 ": ", state->round);
    if (state->is_complete) {
        text_append(out, "complete, its participants have their ranks\n");
    } else if (state->deadline != 0) {
        text_append(out, "open, there are enough participants; more may come until ");
        write_time(state->deadline, now, out);
        text_append(out, "\n");
    } else {
        text_append(out, "open, more participants are waited for\n");
    }
    if (state->is_closed) {
        text_append(out, state->has_failed ? "closed after a failure: no node may join any more\n"
                                           : "closed: no node may join any more\n");
    }
    write_reason(state, out);
}

/* By rank; those without ranks in the order in which they came. */
static int compare(const void *left, const void *right) {
    const struct muster_rendezvous_node *one = *(const struct muster_rendezvous_node *const *)left;
    const struct muster_rendezvous_node *other =
        *(const struct muster_rendezvous_node *const *)right;
    if (one->rank != other->rank) {
        return one->rank < other->rank ? -1 : 1;
    }
    return one < other ? -1 : one > other;
}

static void write_participants(
    const struct muster_rendezvous_state *state, time_t now, struct text *out) {
    size_t count = 0;
    const struct muster_rendezvous_node **nodes =
        memory_allocate((state->node_count + 1) * sizeof *nodes);
    for (size_t i = 0; i < state->node_count; i++) {
        if (state->nodes[i].is_participant) {
            nodes[count++] = &state->nodes[i];
        }
    }
    qsort(nodes, count, sizeof *nodes, compare);
    text_append_format(out, "participants: %zu\n", count);
    for (size_t i = 0; i < count; i++) {
        text_append(out, "  ");
        if (state->is_complete) {
            text_append_format(out, "rank %" PRId64 ": ", nodes[i]->rank);
        }
        text_append(out, nodes[i]->is_done ? "(done) " : "");
        write_node(nodes[i], now, out);
    }
    free(nodes);
}

static void write_others(
    const struct muster_rendezvous_state *state, bool is_wait_list, time_t now, struct text *out) {
    size_t count = is_wait_list ? state->waiting_count : state->redundant_count;
    text_append_format(out, "%s: %zu\n",
        is_wait_list ? "wait list, for the next round" : "redundancy list, the spares", count);
    for (size_t i = 0; i < state->node_count; i++) {
        const struct muster_rendezvous_node *node = &state->nodes[i];
        if (is_wait_list ? node->is_waiting : node->is_redundant) {
            text_append(out, "  ");
            write_node(node, now, out);
        }
    }
}

/* What only Muster's nodes write and read; a record of torchrun's has none of it. */
static void write_marks(const struct muster_rendezvous_state *state, struct text *out) {
    if (state->restarts > 0) {
        text_append_format(out, "restarts used: %" PRId64 "\n", state->restarts);
    }
    if (state->next_restarts > state->restarts) {
        text_append_format(
            out, "restarts used, as the next round counts: %" PRId64 "\n", state->next_restarts);
    }
    if (state->wanted > 0) {
        text_append_format(
            out, "wanted: the round is complete with %" PRId64 " participants\n", state->wanted);
    }
    if (state->signal != 0) {
        const char *name = state->signal > 0 && state->signal < 65
                               ? signal_name_from_number((int)state->signal)
                               : NULL;
        text_append_format(out, "signal: a node was told to end by %s\n",
            name != NULL ? name : "a signal that this machine does not have");
    }
    if (state->is_draining) {
        text_append(
            out, "draining: the workers of a participant are done, so no node is admitted\n");
    }
    if (state->is_doubted) {
        text_append(out, "doubted: a participant doubts a failure, so all are asked to answer\n");
    }
    if (state->is_ranked) {
        text_append(
            out, "ranked: the host of the store tells each node the ranks of its workers\n");
    }
}

void record_words_write(const struct muster_rendezvous_state *state, time_t now, struct text *out) {
    write_phase(state, now, out);
    write_participants(state, now, out);
    write_others(state, true, now, out);
    write_others(state, false, now, out);
    write_marks(state, out);
}
