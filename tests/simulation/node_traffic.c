/* SPDX-License-Identifier: BSD-3-Clause */
/* How many messages and bytes each node sends and receives as nodes become many: all start, rest, 1
 * in 100 of them is killed, as many others come, and all workers are done. It prints a row of JSON
 * for each number of nodes:
 *
 *     node_traffic delegation=true 100 1000 4000
 *
 * Nothing is left to chance: every message takes a millisecond. Bytes are those of the store's
 * protocol, without what TCP adds. Signs of life are not among them: they come the less often the
 * more nodes there are. It fails when a job does not end well; and when what each of a
 * hundred nodes or more costs in a part is not the same for all these numbers of them. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "whole_cluster.h"

#define PART_SECONDS 10
/* Longer than a job takes. */
#define SIGN_OF_LIFE_SECONDS 3600
#define LOST_OF 100
/* Nodes that come at about the same time. */
#define COMING_SECONDS 0.008
/* From so many nodes on, the figures of each node are to be within so much of their middle. */
#define EQUAL_FROM 100
#define MESSAGES_WITHIN 0.03
#define BYTES_WITHIN 0.08 /* numbers of more nodes have more digits */

enum part { PART_START, PART_REST, PART_LOSS, PART_RETURN, PART_END, PART_COUNT };

static const char *const part_names[PART_COUNT] = {
    [PART_START] = "start",
    [PART_REST] = "rest",
    [PART_LOSS] = "loss",
    [PART_RETURN] = "return",
    [PART_END] = "end",
};

/* A little after the part has begun, when what was on its way before has come. */
static struct whole_happens happens(enum part part, enum whole_deed deed, int node) {
    return (struct whole_happens){
        .at = part * PART_SECONDS + (part == PART_START ? 0 : 0.1), .deed = deed, .node = node};
}

/* To be freed. The last nodes are killed: the first one hosts the store. */
static struct whole_happens *story_of(int nodes, int lost, size_t *out_length) {
    struct whole_happens *story = memory_allocate((size_t)(nodes + 3 * lost) * sizeof *story);
    size_t count = 0;
    for (int i = 0; i < lost; i++) {
        story[count++] = happens(PART_LOSS, WHOLE_AGENT_KILLED, nodes - 1 - i);
    }
    for (int i = 0; i < lost; i++) {
        story[count] = happens(PART_RETURN, WHOLE_NODE_COMES, 0);
        story[count++].at += COMING_SECONDS * i / lost;
    }
    for (int i = 0; i < nodes + lost; i++) {
        if (i < nodes - lost || i >= nodes) {
            story[count++] = happens(PART_END, WHOLE_WORKERS_END, i);
        }
    }
    *out_length = count;
    return story;
}

static struct whole_settings job_of(int nodes, int lost, bool delegates) {
    struct whole_settings settings = {
        .kind = MEMBERSHIP_CHANGING,
        .nodes = nodes,
        .workers = 1,
        .max_restarts = 10,
        .shutdown_timeout = 5,
        .is_hosted = true,
        .is_calm = true,
        .part_seconds = PART_SECONDS,
        .transcript_of = -1,
    };
    rendezvous_settings_init(&settings.rendezvous);
    settings.rendezvous.minimum_nodes = nodes - lost;
    settings.rendezvous.maximum_nodes = nodes;
    settings.rendezvous.delegates = delegates;
    settings.rendezvous.keep_alive_interval = duration_from_seconds(SIGN_OF_LIFE_SECONDS);
    settings.rendezvous.last_call_timeout = duration_from_seconds(1);
    return settings;
}

static const char *complaint_about(const struct whole_outcome *outcome, int nodes, int lost) {
    if (outcome->complaint != NULL) {
        return outcome->complaint;
    }
    for (int i = 0; i < outcome->node_count; i++) {
        bool is_killed = i >= nodes - lost && i < nodes;
        if (!is_killed && outcome->endings[i].status != 0) {
            return "a node did not end well";
        }
    }
    return outcome->node_count != nodes + lost ? "not all nodes have come" : NULL;
}

static void print_row(int nodes, const struct whole_outcome *outcome) {
    printf("{\"nodes\": %d, \"worlds\": %d", nodes, outcome->worlds);
    for (int part = 0; part < PART_COUNT; part++) {
        const struct whole_traffic *traffic = &outcome->traffic[part];
        printf(", \"%s\": {\"messages\": %.2f, \"bytes\": %.1f}", part_names[part],
            (double)traffic->messages / nodes, (double)traffic->bytes / nodes);
    }
    printf("}\n");
    fflush(stdout);
}

/* The least and the largest figure so far. */
struct range {
    double least;
    double most;
};

/* Of each part: of messages and of bytes. */
struct spread {
    struct range of[PART_COUNT][2];
};

static bool is_equal(struct range *range, double figure, double within) {
    range->least = range->most == 0 || figure < range->least ? figure : range->least;
    range->most = figure > range->most ? figure : range->most;
    double middle = (range->least + range->most) / 2;
    return range->most <= middle * (1 + within);
}

/* Whether what each node costs is about what it cost in the jobs before. */
static bool costs_the_same(struct spread *spread, int nodes, const struct whole_outcome *outcome) {
    bool is_same = true;
    for (int part = 0; nodes >= EQUAL_FROM && part < PART_COUNT; part++) {
        const struct whole_traffic *traffic = &outcome->traffic[part];
        double figures[] = {(double)traffic->messages / nodes, (double)traffic->bytes / nodes};
        for (int unit = 0; unit < 2; unit++) {
            struct range *range = &spread->of[part][unit];
            if (!is_equal(range, figures[unit], unit == 0 ? MESSAGES_WITHIN : BYTES_WITHIN)) {
                fprintf(stderr, "%d nodes, %s: from %.1f to %.1f %s of each node\n", nodes,
                    part_names[part], range->least, range->most, unit == 0 ? "messages" : "bytes");
                is_same = false;
            }
        }
    }
    return is_same;
}

static bool play(int nodes, bool delegates, struct spread *spread) {
    int lost = nodes < LOST_OF ? 1 : nodes / LOST_OF;
    struct whole_settings settings = job_of(nodes, lost, delegates);
    struct whole_happens *story = story_of(nodes, lost, &settings.story_length);
    settings.story = story;
    struct whole_outcome outcome = whole_cluster_play(&settings);
    const char *complaint = complaint_about(&outcome, nodes, lost);
    bool is_well = false;
    if (complaint == NULL) {
        print_row(nodes, &outcome);
        is_well = !delegates || costs_the_same(spread, nodes, &outcome);
    } else {
        fprintf(stderr, "%d nodes: %s\n", nodes, complaint);
    }
    whole_outcome_clear(&outcome);
    free(story);
    return is_well;
}

int main(int argument_count, char **arguments) {
    struct spread spread = {0};
    bool is_well = argument_count > 1;
    bool delegates = is_well && strcmp(arguments[1], "delegation=true") == 0;
    for (int i = 2; i < argument_count; i++) {
        int nodes = atoi(arguments[i]);
        if (nodes < 2 || nodes + nodes / LOST_OF > WHOLE_NODES_MAXIMUM) {
            fprintf(
                stderr, "%s: from 2 to %d nodes\n", arguments[i], WHOLE_NODES_MAXIMUM * 99 / 100);
            return 2;
        }
        is_well = play(nodes, delegates, &spread) && is_well;
    }
    return is_well ? 0 : 1;
}
