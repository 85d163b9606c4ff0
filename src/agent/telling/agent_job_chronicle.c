/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/telling/agent_job_chronicle.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "core/telling/job_chronicle.h"
#include "host/telling/job_asking.h"
#include "wire/telling/chronicle_json.h"
#include "wire/telling/stacks_json.h"

/* A node tells this long after something has happened: not while workers are stopped and started.
 */
#define TELL_AFTER_MILLISECONDS 200
/* … and each node so much later than the one before it, so that the host hears one after another.
 */
#define TELL_APART_MICROSECONDS 200
/* Between two tellings of a node that has more to tell than one has room for. */
#define TELL_ON_MILLISECONDS 20
/* So many of its last entries a node tells once more to a host that took another's place. */
#define TOLD_AGAIN 64
#define ASK_SECONDS 5
/* The host renews what it tells of the past this long after something has come: then it is settled.
 */
#define PUBLISH_SECONDS 6
/* What the nodes of so many of the lowest ranks keep of it, they ask for when that is done. */
#define LEARNERS 8
#define LEARN_SECONDS 10
/* The host's connection to its own store, when that was lost. */
#define LISTEN_AGAIN_MILLISECONDS 500
#define STORE_SECONDS 30
/* How often a node that tells of its clock asks for the host's, and how much later each node does
 * so than the one before it: many nodes leave the host time for other questions. */
#define CLOCK_SECONDS 300
#define CLOCK_APART_MILLISECONDS 200
#define CLOCK_AGAIN_SECONDS 10 /* where there was no good answer */
/* An answer that took longer says too little. */
#define CLOCK_ANSWER_SECONDS 2
/* How long an answer that nobody takes stays in the store, and how many may be there. */
#define ANSWER_SECONDS 10
#define ANSWERS_MAXIMUM 256
#define ANSWER_BYTES_MAXIMUM ((size_t)32 << 20)

/* Of the answers that have been given lately. */
struct given_answer {
    char name[JOB_QUESTION_NAME_SIZE];
    struct instant until;
    size_t bytes;
};

/* What the host of the store has. */
struct hosting {
    bool is_host;
    bool is_leaving;
    int port;
    struct job_chronicle *chronicle;
    struct store_client *ear; /* NULL: it does not listen now */
    struct event_timer *again;
    struct event_timer *removing;
    struct given_answer answers[ANSWERS_MAXIMUM]; /* the oldest first */
    size_t answer_count;
    size_t answer_bytes;
    bool has_heard_nonsense;
    struct past_anchor anchor; /* this node's last world; round -1: there was none */
    struct event_timer *publishing;
    bool is_publishing; /* it is set */
    bool has_more;      /* something has come since */
};

/* What is known of the host's clock. */
struct host_clock {
    struct job_asking *asking; /* NULL: it is not being asked */
    uint64_t connection;       /* of the host that was asked */
    struct instant due;        /* the next question */
    struct wall_time asked;
    bool is_known;
    struct duration offset; /* of this node's */
};

/* Who waits for the host to be told. */
struct hurry {
    void (*done)(void *context);
    void *context;
};

struct agent_job_chronicle {
    void (*hurried)(void *context); /* while agent_job_chronicle_hurry tells; else NULL */
    void *hurried_context;
    struct event_loop *loop;
    struct agent_job_chronicle_settings settings;
    struct chronicle *chronicle; /* this node's; or NULL */
    struct wall_time life;
    struct hosting hosting;
    struct event_timer *telling;
    bool is_telling;     /* it is set */
    uint64_t connection; /* that was used last */
    bool is_asking_host; /* whether it listens */
    bool is_heard;       /* it does, on this connection */
    int64_t last_seq;    /* of this node's entries */
    int64_t told_seq;    /* the last that was told on this connection */
    struct host_clock clock;
    int64_t again_seq; /* up to here it is told once more to another host */
    int64_t world_seq; /* of the entry about the last world; 0: there was none */
    struct past_anchor world;
    struct chronicle_past past; /* by this node's clock */
    bool is_past_owed;          /* to this host, which may not know it */
    bool has_asked_past;        /* this one */
    struct event_timer *learning;
};

static struct wall_time wall_now(const struct agent_job_chronicle *job) {
    return chronicle_time(job->chronicle, event_loop_now(job->loop));
}

/* The host: answers. */

static void ear_send(struct agent_job_chronicle *job, struct store_request request) {
    const struct store_client_call call = {
        .request = request, .is_raw = true, .timeout = duration_from_seconds(STORE_SECONDS)};
    store_client_send(job->hosting.ear, &call);
}

static char *key_of_answer(const struct agent_job_chronicle *job, const char *name) {
    return text_format("%s" TELLING_KEY_TOLD "%s", job->settings.folder, name);
}

static void arm_removing(struct agent_job_chronicle *job) {
    if (job->hosting.answer_count > 0) {
        event_timer_set(job->hosting.removing, job->hosting.answers[0].until);
    }
}

static void remove_answers(void *context) {
    struct agent_job_chronicle *job = context;
    struct hosting *hosting = &job->hosting;
    struct instant now = event_loop_now(job->loop);
    size_t done = 0;
    while (done < hosting->answer_count && !instant_is_before(now, hosting->answers[done].until)) {
        if (hosting->ear != NULL) {
            char *key = key_of_answer(job, hosting->answers[done].name);
            ear_send(job,
                (struct store_request){.operation = STORE_DELETE, .key = slice_from_string(key)});
            free(key);
        }
        hosting->answer_bytes -= hosting->answers[done++].bytes;
    }
    hosting->answer_count -= done;
    for (size_t i = 0; i < hosting->answer_count; i++) {
        hosting->answers[i] = hosting->answers[i + done];
    }
    arm_removing(job);
}

static void push_piece(
    struct agent_job_chronicle *job, const char *key, char head, struct slice body) {
    struct text piece = {0};
    text_append_format(&piece, "%c", head);
    text_append_bytes(&piece, (const char *)body.data, body.length);
    ear_send(job, (struct store_request){.operation = STORE_QUEUE_PUSH,
                      .key = slice_from_string(key),
                      .value = {(const uint8_t *)piece.data, piece.length}});
    text_clear(&piece);
}

static void give(struct agent_job_chronicle *job, const char *name, char last, struct slice body) {
    struct hosting *hosting = &job->hosting;
    char *key = key_of_answer(job, name);
    struct given_answer *given = &hosting->answers[hosting->answer_count++];
    *given = (struct given_answer){.bytes = body.length,
        .until = instant_after(event_loop_now(job->loop), duration_from_seconds(ANSWER_SECONDS))};
    snprintf(given->name, sizeof given->name, "%s", name);
    hosting->answer_bytes += body.length;
    while (body.length > JOB_ANSWER_PIECE_MAXIMUM) {
        push_piece(job, key, JOB_ANSWER_MORE, (struct slice){body.data, JOB_ANSWER_PIECE_MAXIMUM});
        body = slice_from(body, JOB_ANSWER_PIECE_MAXIMUM);
    }
    push_piece(job, key, last, body);
    arm_removing(job);
    free(key);
}

static void write_entry(void *context, const struct chronicle_entry *entry) {
    chronicle_json_write_entry(entry, context);
}

static void write_status(struct agent_job_chronicle *job, bool has_nodes, struct text *out) {
    struct chronicle_status status;
    const struct chronicle_view view = {.run_id = job->settings.run_id,
        .log_dir = job->settings.log_dir,
        .host = job->settings.node,
        .has_nodes = has_nodes};
    job_chronicle_write_status(job->hosting.chronicle, wall_now(job), &status);
    chronicle_json_write_status(&status, &view, out);
    chronicle_status_clear(&status);
}

static void write_answer(
    struct agent_job_chronicle *job, enum job_question_kind kind, int64_t after, struct text *out) {
    if (kind == JOB_QUESTION_EVENTS) {
        job_chronicle_each_after(job->hosting.chronicle, after, write_entry, out);
    } else if (kind == JOB_QUESTION_CLOCK) {
        text_append_format(out, "%" PRId64, event_loop_wall_time(job->loop).nanoseconds);
    } else {
        write_status(job, kind == JOB_QUESTION_NODES, out);
    }
}

static void answer_question(struct agent_job_chronicle *job, const struct job_question *question) {
    static const char busy[] = "too many have asked within the last ten seconds; ask again later";
    struct hosting *hosting = &job->hosting;
    struct text text = {0};
    if (hosting->answer_count == ANSWERS_MAXIMUM || job->chronicle == NULL) {
        return; /* who asks hears no answer in time */
    }
    if (hosting->answer_count >= ANSWERS_MAXIMUM / 2 ||
        hosting->answer_bytes > ANSWER_BYTES_MAXIMUM) {
        give(job, question->name, JOB_ANSWER_REFUSED, slice_from_string(busy));
        return;
    }
    write_answer(job, question->kind, question->after, &text);
    give(job, question->name, JOB_ANSWER_LAST,
        (struct slice){(const uint8_t *)text_string(&text), text.length});
    text_clear(&text);
}

/* The host: what it tells of the past. */

static void set_past(struct agent_job_chronicle *job, const char *name,
    const struct chronicle_past *past, bool has_recoveries) {
    struct bytes bytes = {0};
    char *key = text_format("%s%s", job->settings.folder, name);
    node_telling_write_past(past, &job->hosting.anchor, has_recoveries, &bytes);
    ear_send(job,
        (struct store_request){
            .operation = STORE_SET, .key = slice_from_string(key), .value = bytes_slice(&bytes)});
    bytes_clear(&bytes);
    free(key);
}

static void publish_past(struct agent_job_chronicle *job) {
    struct chronicle_past past;
    if (job->hosting.ear == NULL || job->hosting.anchor.round < 0 || job->chronicle == NULL) {
        return;
    }
    job_chronicle_write_past(job->hosting.chronicle, wall_now(job), &past);
    set_past(job, TELLING_KEY_ACCOUNT, &past, false);
    if (job->settings.may_move) {
        set_past(job, TELLING_KEY_PAST, &past, true);
    }
    chronicle_past_clear(&past);
}

static void publish_later(struct agent_job_chronicle *job);

/* What has come since it was set is not settled yet. */
static void publish_settled(void *context) {
    struct agent_job_chronicle *job = context;
    bool has_more = job->hosting.has_more;
    job->hosting.is_publishing = false;
    publish_past(job);
    if (has_more) {
        publish_later(job);
    }
}

static void publish_later(struct agent_job_chronicle *job) {
    job->hosting.has_more = job->hosting.is_publishing;
    if (job->settings.may_move && !job->hosting.is_publishing) {
        job->hosting.is_publishing = true;
        event_timer_set(job->hosting.publishing,
            instant_after(event_loop_now(job->loop), duration_from_seconds(PUBLISH_SECONDS)));
    }
}

/* The host: what it hears. */

static void take_told(
    void *context, const struct node_telling *telling, const struct chronicle_entry *entry) {
    struct agent_job_chronicle *job = context;
    struct wall_time now = wall_now(job);
    (void)job_chronicle_take(job->hosting.chronicle, telling->node, telling->life, entry, now);
    job_chronicle_note_clock(job->hosting.chronicle, telling->node, telling->life,
        (struct duration){telling->said.nanoseconds - now.nanoseconds});
    publish_later(job);
}

/* False: it is something else. */
static bool take_past(struct agent_job_chronicle *job, struct slice item) {
    const struct past_anchor now = {-1, wall_now(job)};
    struct chronicle_past past;
    struct wall_time theirs;
    if (node_telling_read_past(item, &now, &past, &theirs) != FAILURE_NONE) {
        return false;
    }
    job_chronicle_inherit(job->hosting.chronicle, &past);
    chronicle_past_clear(&past);
    return true;
}

static void take_item(struct agent_job_chronicle *job, struct slice item) {
    struct node_telling telling;
    struct job_question question;
    if (job->chronicle == NULL) {
        return;
    }
    if (item.length > 0 && *item.data == STANDSTILL_JSON_MARK) {
        job->settings.standstill_told(job->settings.context, item);
        return;
    }
    if (job_question_read(item, &question) == FAILURE_NONE) {
        answer_question(job, &question);
        return;
    }
    if (take_past(job, item)) {
        return;
    }
    if (node_telling_read(item, wall_now(job), &telling, take_told, job) != FAILURE_NONE &&
        !job->hosting.has_heard_nonsense) {
        job->hosting.has_heard_nonsense = true;
        log_info(job->settings.log,
            "something that another node has told of its part in the job makes no sense, and is "
            "left out of `muster status`");
    }
    node_telling_clear(&telling);
}

static void listen_on(struct agent_job_chronicle *job);

static void heard(void *context, const struct store_client_result *result) {
    struct agent_job_chronicle *job = context;
    if (result->code != FAILURE_NONE || result->is_over) {
        return; /* `lost` follows */
    }
    if (result->reply->pop.length > 0) {
        take_item(job, result->reply->pop.front);
    }
    if (job->hosting.ear != NULL) {
        listen_on(job);
    }
}

static void listen_on(struct agent_job_chronicle *job) {
    char *key = text_format("%s" TELLING_KEY_ASKED, job->settings.folder);
    const struct store_client_call call = {
        .request = {.operation = STORE_QUEUE_POP, .key = slice_from_string(key)},
        .is_raw = true,
        .rests = true,
        .done = heard,
        .context = job,
    };
    store_client_send(job->hosting.ear, &call);
    free(key);
}

static void stop_listening(struct agent_job_chronicle *job) {
    struct store_client *ear = job->hosting.ear;
    job->hosting.ear = NULL;
    store_client_free(ear);
}

static void ear_lost(void *context, const struct failure *failure) {
    struct agent_job_chronicle *job = context;
    (void)failure; /* the node's own connection says so, where that is news */
    stop_listening(job);
    event_timer_set(job->hosting.again, instant_after(event_loop_now(job->loop),
                                            duration_from_milliseconds(LISTEN_AGAIN_MILLISECONDS)));
}

static void ear_connected(void *context, const struct failure *failure) {
    struct agent_job_chronicle *job = context;
    if (failure != NULL) {
        ear_lost(job, failure);
        return;
    }
    char *key = text_format("%s" TELLING_KEY_SERVED, job->settings.folder);
    ear_send(job, (struct store_request){.operation = STORE_SET,
                      .key = slice_from_string(key),
                      .value = slice_from_string(job->settings.node)});
    publish_past(job);
    listen_on(job);
    free(key);
}

static void listen_at_store(void *context) {
    struct agent_job_chronicle *job = context;
    if (!job->hosting.is_host || job->hosting.is_leaving || job->hosting.ear != NULL ||
        job->hosting.port == 0 || job->settings.folder == NULL) {
        return;
    }
    const struct store_client_settings settings = {
        .host = "127.0.0.1",
        .port = job->hosting.port,
        .connect_timeout = duration_from_seconds(STORE_SECONDS),
        .key = job->settings.key,
        .connected = ear_connected,
        .lost = ear_lost,
        .context = job,
    };
    job->hosting.ear = store_client_new(job->loop, &settings);
}

static void take_own(void *context, const struct chronicle_entry *entry) {
    struct agent_job_chronicle *job = context;
    (void)job_chronicle_take(
        job->hosting.chronicle, job->settings.node, job->life, entry, wall_now(job));
    if (entry->kind == CHRONICLE_WORLD) {
        job->hosting.anchor = (struct past_anchor){entry->round, entry->time};
        publish_past(job);
    }
    publish_later(job);
}

void agent_job_chronicle_host(struct agent_job_chronicle *job, int port) {
    if (job == NULL || job->hosting.is_host || job->chronicle == NULL) {
        return;
    }
    struct hosting *hosting = &job->hosting;
    hosting->is_host = true;
    hosting->port = port;
    hosting->chronicle = job_chronicle_new();
    hosting->anchor.round = -1;
    job_chronicle_inherit(hosting->chronicle, &job->past);
    if (job->world_seq > 0) {
        job_chronicle_note_change(hosting->chronicle, wall_now(job));
    }
    chronicle_each_after(job->chronicle, 0, take_own, job);
    listen_at_store(job);
}

void agent_job_chronicle_host_no_more(struct agent_job_chronicle *job) {
    if (job == NULL) {
        return;
    }
    struct hosting *hosting = &job->hosting;
    stop_listening(job);
    event_timer_stop(hosting->again);
    event_timer_stop(hosting->removing);
    event_timer_stop(hosting->publishing);
    hosting->is_publishing = false;
    job_chronicle_free(hosting->chronicle);
    hosting->chronicle = NULL;
    hosting->answer_count = hosting->answer_bytes = 0;
    hosting->is_host = false;
}

void agent_job_chronicle_leave(struct agent_job_chronicle *job) {
    if (job != NULL) {
        job->hosting.is_leaving = true;
        stop_listening(job);
    }
}

/* A node: what it is told of the past. */

static void past_heard(void *context, const struct store_client_result *result) {
    struct agent_job_chronicle *job = context;
    struct chronicle_past past;
    struct wall_time theirs;
    if (result->code != FAILURE_NONE || job->world.round < 0 ||
        node_telling_read_past(result->reply->blob, &job->world, &past, &theirs) != FAILURE_NONE) {
        return;
    }
    chronicle_past_join(&job->past, &past);
    chronicle_past_clear(&past);
}

static void ask_for_past(struct agent_job_chronicle *job, const char *name) {
    char *key = text_format("%s%s", job->settings.folder, name);
    const struct store_client_call call = {
        .request = {.operation = STORE_GET, .key = slice_from_string(key)},
        .is_raw = true,
        .timeout = duration_from_seconds(STORE_SECONDS),
        .done = past_heard,
        .context = job,
    };
    (void)job->settings.send(job->settings.context, &call);
    free(key);
}

static void learn(void *context) {
    struct agent_job_chronicle *job = context;
    if (job->is_heard && job->chronicle != NULL &&
        job->settings.connection(job->settings.context) == job->connection) {
        ask_for_past(job, TELLING_KEY_PAST);
    }
}

/* Every node keeps the account, and a few the recoveries, too. */
static void learn_past(struct agent_job_chronicle *job) {
    if (job->settings.may_move || !job->has_asked_past) {
        job->has_asked_past = true;
        ask_for_past(job, TELLING_KEY_ACCOUNT);
    }
    if (job->settings.may_move && job->settings.placement->group_rank < LEARNERS) {
        event_timer_set(job->learning,
            instant_after(event_loop_now(job->loop), duration_from_seconds(LEARN_SECONDS)));
    }
}

/* A node: telling. */

struct adding {
    struct agent_job_chronicle *job;
    struct node_telling telling;
    struct bytes bytes;
    bool is_full;
    bool has_world;
};

/* Of another host what is told soon again, and of any what it knows itself: the nodes of
 * torchrun's.
 */
static bool is_small_talk(
    const struct agent_job_chronicle *job, const struct chronicle_entry *entry) {
    bool is_short_lived = entry->kind == CHRONICLE_PROGRESS || entry->kind == CHRONICLE_CHECKPOINT;
    bool is_of_another =
        entry->kind == CHRONICLE_JOINED && !text_equals(entry->node, job->settings.node);
    return is_of_another || (is_short_lived && entry->seq <= job->again_seq);
}

static void add_entry(void *context, const struct chronicle_entry *entry) {
    struct adding *adding = context;
    if (!adding->is_full && is_small_talk(adding->job, entry)) {
        adding->job->told_seq = entry->seq;
        return;
    }
    adding->has_world = adding->has_world || entry->kind == CHRONICLE_WORLD;
    adding->is_full = adding->is_full || !node_telling_add(&adding->telling, entry, &adding->bytes);
    if (!adding->is_full) {
        adding->job->told_seq = entry->seq;
    }
}

static void arm(struct agent_job_chronicle *job, struct duration delay) {
    if (!job->is_telling) {
        job->is_telling = true;
        event_timer_set(job->telling, instant_after(event_loop_now(job->loop), delay));
    }
}

static void sent_in_a_hurry(void *context, const struct store_client_result *result) {
    struct hurry *hurry = context;
    (void)result;
    hurry->done(hurry->context);
    free(hurry);
}

static void tell_past(struct agent_job_chronicle *job) {
    const struct past_anchor now = {-1, wall_now(job)};
    struct bytes bytes = {0};
    char *key = text_format("%s" TELLING_KEY_ASKED, job->settings.folder);
    node_telling_write_past(&job->past, &now, true, &bytes);
    const struct store_client_call call = {
        .request = {.operation = STORE_QUEUE_PUSH,
            .key = slice_from_string(key),
            .value = bytes_slice(&bytes)},
        .is_raw = true,
        .timeout = duration_from_seconds(STORE_SECONDS),
    };
    (void)job->settings.send(job->settings.context, &call);
    bytes_clear(&bytes);
    free(key);
}

static void tell(struct agent_job_chronicle *job) {
    if (job->is_past_owed) {
        job->is_past_owed = false;
        tell_past(job);
    }
    char *key = text_format("%s" TELLING_KEY_ASKED, job->settings.folder);
    struct adding adding = {.job = job,
        .telling = {.node = memory_duplicate_string(job->settings.node),
            .life = job->life,
            .said = wall_now(job)}};
    int64_t before = job->told_seq;
    node_telling_begin(&adding.telling, &adding.bytes);
    chronicle_each_after(job->chronicle, before, add_entry, &adding);
    struct store_client_call call = {
        .request = {.operation = STORE_QUEUE_PUSH,
            .key = slice_from_string(key),
            .value = bytes_slice(&adding.bytes)},
        .is_raw = true,
        .timeout = duration_from_seconds(STORE_SECONDS),
    };
    if (job->hurried != NULL && job->told_seq > before) {
        const struct hurry hurry = {job->hurried, job->hurried_context};
        call.done = sent_in_a_hurry;
        call.context = memory_duplicate(&hurry, sizeof hurry);
    }
    if (job->told_seq > before && !job->settings.send(job->settings.context, &call)) {
        job->told_seq = before;
        free(call.context);
    } else if (adding.is_full) {
        arm(job, duration_from_milliseconds(TELL_ON_MILLISECONDS));
    }
    if (adding.has_world) {
        learn_past(job);
    }
    node_telling_clear(&adding.telling);
    bytes_clear(&adding.bytes);
    free(key);
}

static void host_checked(void *context, const struct store_client_result *result) {
    struct agent_job_chronicle *job = context;
    job->is_asking_host = false;
    job->is_heard = result->code == FAILURE_NONE && result->reply->byte == STORE_READY &&
                    job->settings.connection(job->settings.context) == job->connection;
    if (job->is_heard && job->chronicle != NULL) {
        tell(job);
    }
}

/* Once for each connection: a store that is no such agent's is not filled. */
static void check_host(struct agent_job_chronicle *job) {
    char *key = text_format("%s" TELLING_KEY_SERVED, job->settings.folder);
    struct slice keys[] = {slice_from_string(key)};
    const struct store_client_call call = {
        .request = {.operation = STORE_CHECK, .keys = keys, .count = 1},
        .is_raw = true,
        .timeout = duration_from_seconds(STORE_SECONDS),
        .done = host_checked,
        .context = job,
    };
    job->is_asking_host = job->settings.send(job->settings.context, &call);
    free(key);
}

static void tell_now(void *context) {
    struct agent_job_chronicle *job = context;
    uint64_t connection = job->settings.connection(job->settings.context);
    job->is_telling = false;
    if (job->hosting.is_host || job->chronicle == NULL || connection == 0 ||
        job->settings.folder == NULL) {
        return;
    }
    if (connection != job->connection) {
        job->connection = connection;
        job->is_heard = false;
        job->has_asked_past = false;
        job->is_past_owed = job->past.until.nanoseconds > 0;
        job->again_seq = job->last_seq > TOLD_AGAIN ? job->last_seq - TOLD_AGAIN : 0;
        job->told_seq = job->again_seq;
        if (job->world_seq > 0 && job->world_seq <= job->told_seq) {
            job->told_seq = job->world_seq - 1;
        }
    }
    if (job->told_seq == job->last_seq) {
        return;
    }
    if (job->is_heard) {
        tell(job);
    } else if (!job->is_asking_host) {
        check_host(job);
    }
}

bool agent_job_chronicle_hurry(
    struct agent_job_chronicle *job, void (*done)(void *context), void *context) {
    if (job == NULL || !job->is_heard) {
        return false;
    }
    /* What is on its way goes before what is told now, and the last entry may be told twice. */
    job->told_seq -= job->told_seq == job->last_seq && job->last_seq > 0 ? 1 : 0;
    int64_t before = job->told_seq;
    job->hurried = done;
    job->hurried_context = context;
    tell_now(job);
    job->hurried = NULL;
    return job->told_seq > before;
}

static struct duration delay(const struct agent_job_chronicle *job) {
    int64_t rank =
        job->settings.placement->group_rank > 0 ? job->settings.placement->group_rank : 0;
    return (struct duration){TELL_AFTER_MILLISECONDS * (int64_t)NANOSECONDS_PER_MILLISECOND +
                             rank * TELL_APART_MICROSECONDS * 1000};
}

void agent_job_chronicle_note(
    struct agent_job_chronicle *job, const struct chronicle_entry *entry) {
    if (job == NULL || job->chronicle == NULL) {
        return;
    }
    job->last_seq = entry->seq;
    if (entry->kind == CHRONICLE_WORLD) {
        job->world_seq = entry->seq;
        job->world = (struct past_anchor){entry->round, entry->time};
    }
    if (job->hosting.is_host) {
        take_own(job, entry);
        return;
    }
    arm(job, delay(job));
    if (entry->kind == CHRONICLE_ENDED) {
        tell_now(job); /* the connection is about to end */
    }
}

void agent_job_chronicle_note_connected(struct agent_job_chronicle *job) {
    if (job != NULL && job->last_seq > 0) {
        arm(job, delay(job));
    }
}

/* For agent_hang. */

bool agent_job_chronicle_is_host(const struct agent_job_chronicle *job) {
    return job != NULL && job->hosting.is_host && job->chronicle != NULL;
}

bool agent_job_chronicle_write_status(
    struct agent_job_chronicle *job, struct chronicle_status *out_status) {
    if (!agent_job_chronicle_is_host(job)) {
        return false;
    }
    job_chronicle_write_status(job->hosting.chronicle, wall_now(job), out_status);
    return true;
}

bool agent_job_chronicle_is_heard(const struct agent_job_chronicle *job) {
    return job != NULL && !job->hosting.is_host && job->is_heard &&
           job->settings.connection(job->settings.context) == job->connection;
}

bool agent_job_chronicle_send(
    struct agent_job_chronicle *job, struct store_client_call call, const char *name) {
    if (job == NULL || job->settings.folder == NULL ||
        !(job->hosting.is_host ? job->hosting.ear != NULL : agent_job_chronicle_is_heard(job))) {
        return false;
    }
    char *key = text_format("%s%s", job->settings.folder, name);
    struct slice keys[] = {slice_from_string(key)};
    bool has_list = call.request.operation == STORE_MULTI_GET;
    call.request.key = has_list ? (struct slice){0} : keys[0];
    call.request.keys = has_list ? keys : NULL;
    call.request.count = has_list ? 1 : 0;
    call.is_raw = true;
    call.timeout = duration_from_seconds(STORE_SECONDS);
    bool is_sent = true;
    if (job->hosting.is_host) {
        store_client_send(job->hosting.ear, &call);
    } else {
        is_sent = job->settings.send(job->settings.context, &call);
    }
    free(key);
    return is_sent;
}

/* Asking. */

struct job_asking *agent_job_chronicle_ask(struct agent_job_chronicle *job,
    enum job_question_kind kind, int64_t after,
    void (*done)(void *context, const struct failure *failure, struct slice answer),
    void *context) {
    struct failure failure = {0};
    const char *host;
    int port;
    if (job->hosting.is_host && job->chronicle != NULL) {
        struct text text = {0};
        write_answer(job, kind, after, &text);
        done(context, NULL, (struct slice){(const uint8_t *)text_string(&text), text.length});
        text_clear(&text);
        return NULL;
    }
    if (job->settings.folder == NULL ||
        !job->settings.find_host(job->settings.context, &host, &port)) {
        (void)failure_set(&failure, FAILURE_MISSING,
            "this node is not connected to a store that an agent hosts for the job");
        done(context, &failure, (struct slice){0});
        return NULL;
    }
    const struct job_asking_settings settings = {
        .host = host,
        .port = port,
        .key = job->settings.key,
        .folder = job->settings.folder,
        .kind = kind,
        .after = after,
        .timeout = duration_from_seconds(ASK_SECONDS),
        .done = done,
        .context = context,
    };
    return job_asking_new(job->loop, &settings);
}

/* What is asked of this node. */

/* The host is the last that ends, and does not listen any more when the others tell of their ends.
 */
static void end_with_host(struct chronicle_status *status, const char *host) {
    int place = chronicle_status_find(status, host);
    if (place >= 0 && status->nodes[place].state == CHRONICLE_NODE_ENDED) {
        status->state = JOB_ENDED;
    }
}

bool agent_job_chronicle_see(struct agent_job_chronicle *job, bool is_last,
    void (*take)(void *context, const struct chronicle_status *status), void *context) {
    struct chronicle_status status;
    if (job == NULL || !job->hosting.is_host || job->chronicle == NULL) {
        return false;
    }
    if (is_last) {
        job_chronicle_write_status(job->hosting.chronicle, wall_now(job), &status);
        end_with_host(&status, job->settings.node);
        take(context, &status);
        chronicle_status_clear(&status);
    } else {
        job_chronicle_see_settled(job->hosting.chronicle, wall_now(job), take, context);
    }
    return true;
}

/* A large job leaves the host more time. */
static struct instant clock_due(const struct agent_job_chronicle *job, int seconds) {
    struct duration least = duration_from_seconds(seconds);
    struct duration turn = duration_from_milliseconds(
        (int64_t)job->settings.placement->group_world_size * CLOCK_APART_MILLISECONDS);
    return instant_after(
        event_loop_now(job->loop), turn.nanoseconds > least.nanoseconds ? turn : least);
}

/* The host has read its clock about in the middle of the time that the answer took. */
static void clock_answered(void *context, const struct failure *failure, struct slice answer) {
    struct agent_job_chronicle *job = context;
    struct host_clock *clock = &job->clock;
    int64_t host;
    int64_t took = event_loop_wall_time(job->loop).nanoseconds - clock->asked.nanoseconds;
    char *text = text_format("%.*s", (int)answer.length, (const char *)answer.data);
    bool is_good = failure == NULL && took >= 0 &&
                   took < CLOCK_ANSWER_SECONDS * (int64_t)NANOSECONDS_PER_SECOND &&
                   text_parse_integer(text, &host) == FAILURE_NONE && host > 0;
    if (is_good) {
        clock->is_known = true;
        clock->offset.nanoseconds = clock->asked.nanoseconds + took / 2 - host;
    }
    clock->due = clock_due(job, is_good ? CLOCK_SECONDS : CLOCK_AGAIN_SECONDS);
    free(text);
    job_asking_free(clock->asking);
    clock->asking = NULL;
}

/* Each node has its turn after the one before it. */
bool agent_job_chronicle_find_clock_offset(
    struct agent_job_chronicle *job, struct duration *out_offset) {
    if (job == NULL || job->chronicle == NULL) {
        return false;
    }
    struct host_clock *clock = &job->clock;
    const struct node_placement *placement = job->settings.placement;
    uint64_t connection = job->settings.connection(job->settings.context);
    struct instant now = event_loop_now(job->loop);
    if (job->hosting.is_host) {
        *out_offset = (struct duration){0};
        return true;
    }
    if (placement->group_world_size <= 0) {
        return false; /* it has no turn yet */
    }
    if (connection != clock->connection) {
        clock->connection = connection;
        clock->is_known = false;
        clock->due = instant_after(now,
            duration_from_milliseconds((int64_t)placement->group_rank * CLOCK_APART_MILLISECONDS));
    }
    if (connection != 0 && clock->asking == NULL && !instant_is_before(now, clock->due)) {
        clock->due = (struct instant){INT64_MAX};
        clock->asked = event_loop_wall_time(job->loop);
        clock->asking = agent_job_chronicle_ask(job, JOB_QUESTION_CLOCK, 0, clock_answered, job);
    }
    *out_offset = clock->offset;
    return clock->is_known;
}

/* Life. */

struct agent_job_chronicle *agent_job_chronicle_new(
    struct event_loop *loop, const struct agent_job_chronicle_settings *settings) {
    struct agent_job_chronicle *job = memory_allocate(sizeof *job);
    job->loop = loop;
    job->settings = *settings;
    job->telling = event_timer_new(loop, tell_now, job);
    job->hosting.again = event_timer_new(loop, listen_at_store, job);
    job->hosting.removing = event_timer_new(loop, remove_answers, job);
    job->hosting.publishing = event_timer_new(loop, publish_settled, job);
    job->hosting.anchor.round = job->world.round = -1;
    job->learning = event_timer_new(loop, learn, job);
    return job;
}

void agent_job_chronicle_use(
    struct agent_job_chronicle *job, struct chronicle *chronicle, struct wall_time life) {
    if (job != NULL) {
        job->chronicle = chronicle;
        job->life = life;
    }
}

void agent_job_chronicle_free(struct agent_job_chronicle *job) {
    if (job == NULL) {
        return;
    }
    agent_job_chronicle_host_no_more(job);
    job_asking_free(job->clock.asking);
    event_timer_free(job->telling);
    event_timer_free(job->hosting.again);
    event_timer_free(job->hosting.removing);
    event_timer_free(job->hosting.publishing);
    event_timer_free(job->learning);
    chronicle_past_clear(&job->past);
    free(job);
}
