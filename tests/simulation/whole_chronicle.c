/* SPDX-License-Identifier: BSD-3-Clause */
/* The chronicles: each node's, and that of the job, which a host hears that outlives all of them.
 * Whatever happens, all time is accounted for, the phases of a recovery are its whole, no failure
 * is missing or told twice, and the same entries give the same status on a node, at the host, at
 * the host after it, and from a file. Clocks of nodes are an hour apart: the host dates by its own.
 */
#include "whole_parts.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "wire/telling/chronicle_json.h"
#include "wire/telling/node_telling.h"

#define BEGAN_SECONDS INT64_C(1700000000)
#define TOLD_AGAIN 64
#define SETTLED_AFTER 5
/* When another host takes over, in seconds. */
#define CHANGES_AFTER 6
#define CHANGES_WITHIN 20

static struct wall_time host_time(const struct whole_cluster *cluster) {
    int64_t time = BEGAN_SECONDS * WHOLE_SECOND + cluster->now;
    return (struct wall_time){time - time % CHRONICLE_GRAIN_NANOSECONDS};
}

/* A node's own. */

static int64_t no_pid(void *context, int local_rank) {
    (void)context;
    return 1 + local_rank;
}

static uint64_t none_from_standby(void *context) {
    (void)context;
    return 0;
}

static bool no_words(void *context, int local_rank, int64_t pid, struct text *out) {
    (void)context;
    (void)local_rank;
    (void)pid;
    (void)out;
    return true;
}

static bool is_accounted_for(const struct chronicle_status *status) {
    int64_t sum = 0;
    for (int state = 0; state < JOB_ENDED; state++) {
        sum += status->account.states[state].nanoseconds;
    }
    return sum == chronicle_status_wall(status).nanoseconds;
}

static bool are_phases_whole(const struct chronicle_status *status) {
    if (status->recovery_count == 0 || !status->recoveries[status->recovery_count - 1].is_over) {
        return true;
    }
    const struct chronicle_recovery *last = &status->recoveries[status->recovery_count - 1];
    int64_t sum = 0;
    for (int moment = RECOVERY_NOTICED; moment < RECOVERY_MOMENT_COUNT; moment++) {
        sum += chronicle_recovery_phase(last, (enum recovery_moment)moment).nanoseconds;
    }
    return sum ==
           last->moments[RECOVERY_STARTED].nanoseconds - last->moments[RECOVERY_FAILED].nanoseconds;
}

static bool is_same(const struct chronicle_status *left, const struct chronicle_status *right) {
    return left->state == right->state &&
           left->recovery_count + left->recoveries_before ==
               right->recovery_count + right->recoveries_before &&
           memcmp(&left->account, &right->account, sizeof left->account) == 0;
}

static void hear_entry(void *context, const struct chronicle_entry *entry) {
    struct whole_node *node = context;
    struct text line = {0};
    struct chronicle_entry again;
    chronicle_json_write_entry(entry, &line);
    bool is_read =
        line.length <= CHRONICLE_LINE_MAXIMUM &&
        chronicle_json_read_entry(slice_from_string(text_string(&line)), &again) == FAILURE_NONE;
    chronicle_status_take(&node->told, entry);
    node->told_seq = entry->seq;
    if (entry->kind == CHRONICLE_WORLD) {
        node->world_seq = entry->seq;
    }
    if (entry->kind == CHRONICLE_WORKER_FAILED &&
        chronicle_entry_number(
            entry, CHRONICLE_EXIT, chronicle_entry_number(entry, CHRONICLE_SIGNAL, -1)) >= 0) {
        node->failures_told++;
    }
    if (is_read) {
        chronicle_status_take(&node->retold, &again);
        chronicle_entry_clear(&again);
    }
    if (!is_read || !is_accounted_for(&node->told) || !are_phases_whole(&node->told) ||
        !is_same(&node->told, &node->retold)) {
        whole_complain(node->cluster, "the chronicle of %s does not add up: %s", node->name,
            text_string(&line));
    }
    text_clear(&line);
}

static void open_chronicle(struct whole_cluster *cluster, struct whole_node *node) {
    struct wall_time now = host_time(cluster);
    node->life = now;
    node->clock_offset = node->wall_offset - node->wall_offset % CHRONICLE_GRAIN_NANOSECONDS;
    const struct chronicle_settings settings = {.node = node->chronicle_name,
        .version = "1",
        .placement = &node_machine_knowledge(node->machine)->placement,
        .minimum_nodes = 1,
        .maximum_nodes = cluster->settings.nodes,
        .began = {cluster->now},
        .began_at = {now.nanoseconds + node->clock_offset},
        .pid = no_pid,
        .from_standby = none_from_standby,
        .words = no_words,
        .told = hear_entry,
        .context = node};
    node->chronicle = chronicle_new(&settings);
}

/* As the agent machine is told, and not as the chronicle counts: each worker fails once. */
static bool is_failure(struct whole_node *node, const struct agent_event *event,
    enum agent_phase before, const struct agent_machine *machine) {
    const struct worker_group *workers = &machine->workers;
    bool is_end =
        event->kind == AGENT_EVENT_WORKER_EXITED || event->kind == AGENT_EVENT_WORKER_ENDING;
    if (before == AGENT_JOINING) {
        node->failed_ranks = 0;
    }
    if (!is_end || event->worker_exited.exit.value == 0 ||
        (before != AGENT_RUNNING && before != AGENT_STARTING) || workers->failure_count == 0 ||
        workers->failures[workers->failure_count - 1].is_from_our_signal) {
        return false;
    }
    unsigned rank = 1U << event->worker_exited.local_rank;
    bool is_new = (node->failed_ranks & rank) == 0;
    node->failed_ranks |= rank;
    return is_new;
}

/* Of the nodes of torchrun's, as the agent does, but by names of their own. */
static void note_foreign(struct whole_cluster *cluster, const struct whole_node *node) {
    const struct rendezvous_state *record =
        rendezvous_machine_state(node_machine_rendezvous(node->machine));
    for (size_t i = 0; i < record->count; i++) {
        const struct rendezvous_node *other = &record->nodes[i];
        if (other->is_participant && !node_identity_is_muster(&other->identity)) {
            char *name = text_format("%s.%d", other->identity.address, (int)other->identity.pid);
            chronicle_note_foreign(
                node->chronicle, (struct instant){cluster->now}, name, (int)other->rank);
            free(name);
        }
    }
}

void whole_tell_chronicle(struct whole_cluster *cluster, struct whole_node *node,
    const struct agent_event *event, enum agent_phase before, const struct node_effects *effects) {
    const struct agent_outcome *outcome = NULL;
    const struct agent_machine *machine = node_machine_agent(node->machine);
    if (node->chronicle == NULL) {
        open_chronicle(cluster, node);
    }
    for (size_t i = 0; i < effects->count; i++) {
        const struct node_effect *effect = &effects->items[i];
        if (effect->part == NODE_AGENT && effect->agent.kind == AGENT_EFFECT_FINISH) {
            outcome = &effect->agent.outcome;
        }
    }
    bool has_joined = before == AGENT_JOINING && machine->phase == AGENT_STARTING;
    node->failures += is_failure(node, event, before, machine) ? 1 : 0;
    chronicle_step(node->chronicle, before, machine, event, outcome);
    if (has_joined && cluster->settings.kind == MEMBERSHIP_CHANGING) {
        note_foreign(cluster, node);
    }
    if (machine->phase != AGENT_STARTING && node->failures != node->failures_told) {
        whole_complain(cluster, "%s has seen %d failures, and has told of %d", node->name,
            node->failures, node->failures_told);
    }
    if (outcome != NULL) {
        whole_tell_host(cluster, node); /* its last words */
    }
}

/* The host's. */

struct telling {
    struct whole_cluster *cluster;
    struct whole_node *node;
    struct node_telling head;
    struct bytes bytes;
    int64_t last; /* that has been added */
    bool is_full;
};

/* A lost node is known by its process, as nodes may have one name. */
static const char *name_of_lost(
    const struct whole_cluster *cluster, const struct chronicle_entry *entry) {
    const char *reason = chronicle_entry_text(entry, CHRONICLE_REASON);
    const char *pid = reason != NULL ? strstr(reason, "(pid ") : NULL;
    for (int i = 0; pid != NULL && i < cluster->node_count; i++) {
        if (cluster->nodes[i]->identity.pid == atoll(pid + strlen("(pid "))) {
            return cluster->nodes[i]->chronicle_name;
        }
    }
    return entry->node;
}

static void add_entry(void *context, const struct chronicle_entry *entry) {
    struct telling *telling = context;
    struct chronicle_entry named = *entry;
    char *name = memory_duplicate_string(
        entry->kind == CHRONICLE_NODE_LOST ? name_of_lost(telling->cluster, entry) : entry->node);
    named.node = name;
    telling->is_full =
        telling->is_full || !node_telling_add(&telling->head, &named, &telling->bytes);
    telling->last = telling->is_full ? telling->last : entry->seq;
    free(name);
}

struct hearing {
    struct whole_cluster *cluster;
    struct job_chronicle *job;
    int new_count;
};

static void hear(
    void *context, const struct node_telling *telling, const struct chronicle_entry *entry) {
    struct hearing *hearing = context;
    struct whole_cluster *cluster = hearing->cluster;
    int64_t age = host_time(cluster).nanoseconds - entry->time.nanoseconds;
    cluster->heard_at = cluster->now;
    if (hearing->job == cluster->host && age > SETTLED_AFTER * WHOLE_SECOND) {
        cluster->is_told_late = true; /* what is later is settled already */
    }
    if (hearing->job == cluster->host && cluster->settings.is_printed) {
        struct text line = {0};
        chronicle_json_write_entry(entry, &line);
        whole_note(cluster, NULL, "the host hears %s", text_string(&line));
        text_clear(&line);
    }
    hearing->new_count += job_chronicle_take(hearing->job, telling->node, telling->life, entry,
                              host_time(hearing->cluster))
                              ? 1
                              : 0;
}

/* Returns how many of them were new. */
static int hear_bytes(
    struct whole_cluster *cluster, struct job_chronicle *job, const struct bytes *bytes) {
    struct node_telling head;
    struct hearing hearing = {cluster, job, 0};
    if (node_telling_read(bytes_slice(bytes), host_time(cluster), &head, hear, &hearing) !=
        FAILURE_NONE) {
        whole_complain(cluster, "what a node has told cannot be read");
    }
    node_telling_clear(&head);
    return hearing.new_count;
}

/* What it has not told before, in as many pieces as it takes. */
static void tell(struct whole_cluster *cluster, struct whole_node *node, int64_t after,
    struct job_chronicle *const *jobs, size_t job_count) {
    struct telling telling = {.cluster = cluster, .node = node, .last = after};
    telling.head = (struct node_telling){.node = node->chronicle_name,
        .life = node->life,
        .said = {host_time(cluster).nanoseconds + node->clock_offset}};
    do {
        telling.is_full = false;
        bytes_clear(&telling.bytes);
        node_telling_begin(&telling.head, &telling.bytes);
        chronicle_each_after(node->chronicle, telling.last, add_entry, &telling);
        for (size_t i = 0; i < job_count; i++) {
            (void)hear_bytes(cluster, jobs[i], &telling.bytes);
            if (hear_bytes(cluster, jobs[i], &telling.bytes) != 0) {
                whole_complain(cluster, "what %s tells twice is taken twice", node->name);
            }
        }
    } while (telling.is_full);
    bytes_clear(&telling.bytes);
}

/* To another host it tells its last entries once more, with that of its last world. */
static void tell_next_host(struct whole_cluster *cluster, struct whole_node *node) {
    int64_t after = node->heard_seq > TOLD_AGAIN ? node->heard_seq - TOLD_AGAIN : 0;
    after = node->world_seq > 0 && node->world_seq <= after ? node->world_seq - 1 : after;
    tell(cluster, node, after, &cluster->next_host, 1);
    node->knows_next_host = true;
}

void whole_tell_host(struct whole_cluster *cluster, struct whole_node *node) {
    struct job_chronicle *jobs[] = {cluster->host, cluster->next_host};
    if (node->chronicle != NULL && cluster->next_host != NULL && !node->knows_next_host) {
        tell_next_host(cluster, node);
    }
    if (node->chronicle != NULL && node->heard_seq < node->told_seq) {
        tell(cluster, node, node->heard_seq, jobs, cluster->next_host != NULL ? 2 : 1);
        node->heard_seq = node->told_seq;
    }
}

/* What has been settled by then is spelled, and nodes that are there tell of their last world. */
static void change_host(struct whole_cluster *cluster) {
    const struct past_anchor anchor = {-1, host_time(cluster)};
    struct chronicle_past past;
    struct chronicle_past read = {0};
    struct wall_time theirs;
    struct bytes bytes = {0};
    cluster->next_host = job_chronicle_new();
    job_chronicle_write_past(cluster->host, host_time(cluster), &past);
    /* Who knew of a recovery that is not over may be gone. */
    cluster->is_next_told_all = cluster->is_next_told_all && past.state != JOB_RECOVERING;
    node_telling_write_past(&past, &anchor, true, &bytes);
    if (node_telling_read_past(bytes_slice(&bytes), &anchor, &read, &theirs) != FAILURE_NONE) {
        whole_complain(cluster, "what the host tells of the past cannot be read");
    }
    job_chronicle_inherit(cluster->next_host, &read);
    for (int i = 0; i < cluster->node_count; i++) {
        struct whole_node *node = cluster->nodes[i];
        if (node->chronicle != NULL && node->is_alive && !node->is_stopped) {
            tell_next_host(cluster, node);
        }
    }
    chronicle_past_clear(&past);
    chronicle_past_clear(&read);
    bytes_clear(&bytes);
}

void whole_chronicle_look(struct whole_cluster *cluster) {
    int64_t change = CHANGES_AFTER + (int64_t)(cluster->settings.seed % CHANGES_WITHIN);
    for (int i = 0; i < cluster->node_count; i++) {
        struct whole_node *node = cluster->nodes[i];
        if (node->is_alive && !node->is_stopped) {
            whole_tell_host(cluster, node);
        }
    }
    bool is_quiet = cluster->now - cluster->heard_at > (SETTLED_AFTER + 1) * WHOLE_SECOND;
    if (cluster->next_host == NULL && cluster->now / WHOLE_SECOND >= change &&
        (is_quiet || cluster->settings.seed % 2 == 0)) {
        /* What has not been settled goes with nodes that go at this moment. */
        cluster->is_next_told_all = is_quiet;
        change_host(cluster);
    }
}

/* What must hold. */

struct lines {
    struct text *items;
    size_t count;
    size_t capacity;
    struct chronicle_entry *entries;
    size_t entry_capacity;
};

static void collect(void *context, const struct chronicle_entry *entry) {
    struct lines *lines = context;
    lines->items =
        memory_reserve(lines->items, &lines->capacity, lines->count + 1, sizeof *lines->items);
    lines->items[lines->count] = (struct text){0};
    chronicle_json_write_entry(entry, &lines->items[lines->count++]);
}

static int compare_entries(const void *left, const void *right) {
    const struct chronicle_entry *one = left;
    const struct chronicle_entry *other = right;
    int64_t difference = one->time.nanoseconds != other->time.nanoseconds
                             ? one->time.nanoseconds - other->time.nanoseconds
                             : one->seq - other->seq;
    return (difference > 0) - (difference < 0);
}

/* False: the host keeps not all of them any more. */
static bool fold_file(const struct job_chronicle *job, struct chronicle_status *out_status) {
    struct lines lines = {0};
    bool is_whole = false;
    job_chronicle_each_after(job, 0, collect, &lines);
    lines.entries = memory_allocate((lines.count + 1) * sizeof *lines.entries);
    for (size_t i = 0; i < lines.count; i++) {
        if (chronicle_json_read_entry(slice_from_string(text_string(&lines.items[i])),
                &lines.entries[i]) != FAILURE_NONE) {
            lines.entries[i] = (struct chronicle_entry){0};
        }
        text_clear(&lines.items[i]);
    }
    if (lines.count > 0) {
        is_whole = lines.entries[0].seq == 1;
        qsort(lines.entries, lines.count, sizeof *lines.entries, compare_entries);
    }
    for (size_t i = 0; i < lines.count; i++) {
        chronicle_status_take(out_status, &lines.entries[i]);
        chronicle_entry_clear(&lines.entries[i]);
    }
    free(lines.entries);
    free(lines.items);
    return is_whole;
}

static void check_law(struct whole_cluster *cluster, struct job_chronicle *job,
    const struct chronicle_status *status, const char *whose) {
    struct chronicle_status again = {0};
    if (!is_accounted_for(status) || !are_phases_whole(status)) {
        whole_complain(cluster, "the account of the %s does not add up", whose);
    }
    if (job == cluster->host && !cluster->is_told_late && fold_file(job, &again)) {
        chronicle_status_advance(&again, status->now);
        if (!is_same(status, &again)) {
            whole_complain(cluster, "the status of the %s is another one from a file", whose);
        }
    }
    chronicle_status_clear(&again);
}

static bool runs_in_world(struct whole_cluster *cluster, const struct whole_node *node) {
    const struct rendezvous_node *entry =
        whole_is_live(node) && !node->is_torch
            ? rendezvous_state_find(&cluster->store.record, &node->identity)
            : NULL;
    return entry != NULL && entry->is_participant;
}

/* All have been quiet for a while. Of a world without a node of ours nobody tells. */
static void check_nodes(
    struct whole_cluster *cluster, struct chronicle_status *status, const char *whose) {
    int running = 0;
    for (int i = 0; i < cluster->node_count; i++) {
        running += runs_in_world(cluster, cluster->nodes[i]) ? 1 : 0;
    }
    for (int i = 0; i < cluster->node_count && running > 0; i++) {
        const struct whole_node *node = cluster->nodes[i];
        bool runs = runs_in_world(cluster, node);
        int place = node->is_torch ? -1 : chronicle_status_find(status, node->chronicle_name);
        enum chronicle_node_state state =
            place >= 0 ? status->nodes[place].state : CHRONICLE_NODE_GONE;
        if (!node->is_torch && runs != (state == CHRONICLE_NODE_RUNNING)) {
            whole_complain(cluster, "%s %s, and by the %s it is %s", node->name,
                runs ? "runs" : "does not run", whose, chronicle_node_state_name(state));
        }
    }
    if (running > 0 &&
        (status->state != JOB_RUNNING ||
            (size_t)status->node_count != rendezvous_state_participants(&cluster->store.record))) {
        whole_complain(cluster, "%d nodes run, and by the %s the job is %s with %d nodes", running,
            whose, job_state_name(status->state), status->node_count);
    }
}

/* `is_gathered`: all that are there are in one world, or wait for a place in it. */
void whole_chronicle_check(struct whole_cluster *cluster, bool is_gathered) {
    struct chronicle_status status;
    struct chronicle_status next = {0};
    whole_chronicle_look(cluster);
    job_chronicle_write_status(cluster->host, host_time(cluster), &status);
    check_law(cluster, cluster->host, &status, "host");
    if (is_gathered) {
        check_nodes(cluster, &status, "host");
    }
    if (cluster->next_host != NULL) {
        job_chronicle_write_status(cluster->next_host, host_time(cluster), &next);
        check_law(cluster, cluster->next_host, &next, "next host");
        if (is_gathered) {
            check_nodes(cluster, &next, "next host");
        }
        /* Whether the job was over in between may be known to those alone that are gone. */
        bool was_over = status.account.states[JOB_ENDED].nanoseconds != 0 ||
                        next.account.states[JOB_ENDED].nanoseconds != 0;
        bool is_comparable =
            !was_over && is_gathered && cluster->is_next_told_all && !cluster->is_told_late;
        if (is_comparable && chronicle_status_wall(&status).nanoseconds !=
                                 chronicle_status_wall(&next).nanoseconds) {
            whole_complain(cluster, "the next host counts another time");
        }
        if (is_comparable && status.recovery_count + status.recoveries_before !=
                                 next.recovery_count + next.recoveries_before) {
            whole_complain(cluster, "the host knows of %zu recoveries, and the next one of %zu",
                status.recovery_count + status.recoveries_before,
                next.recovery_count + next.recoveries_before);
        }
        chronicle_status_clear(&next);
    }
    chronicle_status_clear(&status);
}
