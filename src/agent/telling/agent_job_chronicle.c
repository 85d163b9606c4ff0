/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/telling/agent_job_chronicle.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "core/telling/job_chronicle.h"
#include "host/telling/job_asking.h"
#include "wire/telling/chronicle_json.h"

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
/* The host's connection to its own store, when that was lost. */
#define LISTEN_AGAIN_MILLISECONDS 500
#define STORE_SECONDS 30
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
    if (kind != JOB_QUESTION_EVENTS) {
        write_status(job, kind == JOB_QUESTION_NODES, out);
    } else {
        job_chronicle_each_after(job->hosting.chronicle, after, write_entry, out);
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

/* The host: what it hears. */

static void take_told(
    void *context, const struct node_telling *telling, const struct chronicle_entry *entry) {
    struct agent_job_chronicle *job = context;
    (void)job_chronicle_take(
        job->hosting.chronicle, telling->node, telling->life, entry, wall_now(job));
}

static void take_item(struct agent_job_chronicle *job, struct slice item) {
    struct node_telling telling;
    struct job_question question;
    if (job->chronicle == NULL) {
        return;
    }
    if (job_question_read(item, &question) == FAILURE_NONE) {
        answer_question(job, &question);
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
}

void agent_job_chronicle_host(struct agent_job_chronicle *job, int port) {
    if (job == NULL || job->hosting.is_host || job->chronicle == NULL) {
        return;
    }
    struct hosting *hosting = &job->hosting;
    hosting->is_host = true;
    hosting->port = port;
    hosting->chronicle = job_chronicle_new();
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

/* A node: telling. */

static void add_entry(void *context, const struct chronicle_entry *entry);

struct adding {
    struct agent_job_chronicle *job;
    struct node_telling telling;
    struct bytes bytes;
    bool is_full;
};

static void add_entry(void *context, const struct chronicle_entry *entry) {
    struct adding *adding = context;
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

static void tell(struct agent_job_chronicle *job) {
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
        job->told_seq = job->last_seq > TOLD_AGAIN ? job->last_seq - TOLD_AGAIN : 0;
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

/* Life. */

struct agent_job_chronicle *agent_job_chronicle_new(
    struct event_loop *loop, const struct agent_job_chronicle_settings *settings) {
    struct agent_job_chronicle *job = memory_allocate(sizeof *job);
    job->loop = loop;
    job->settings = *settings;
    job->telling = event_timer_new(loop, tell_now, job);
    job->hosting.again = event_timer_new(loop, listen_at_store, job);
    job->hosting.removing = event_timer_new(loop, remove_answers, job);
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
    event_timer_free(job->telling);
    event_timer_free(job->hosting.again);
    event_timer_free(job->hosting.removing);
    free(job);
}
