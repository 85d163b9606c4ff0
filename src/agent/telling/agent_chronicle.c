/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/telling/agent_chronicle.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "core/telling/chronicle_status.h"
#include "core/workers/log_plan.h"
#include "host/failure/death_evidence.h"
#include "host/loop/blocking_pool.h"
#include "host/telling/event_thread.h"
#include "host/telling/job_asking.h"
#include "wire/failure/failure_json.h"
#include "wire/telling/chronicle_json.h"

#define FILE_NAME "events.jsonl"
#define TURN_AT_BYTES ((size_t)64 * 1024 * 1024)
/* How long a disk that does not answer may hold up the end of a job. */
#define DISK_PATIENCE_SECONDS 2
/* How long the words of a failed worker, which a disk may hold up, are waited for. */
#define WORDS_PATIENCE_MILLISECONDS 250

/* The words of a worker in whose place another one is being started: its error file is read here.
 */
struct last_reading {
    struct agent_chronicle *chronicle;
    struct blocking_call *call; /* NULL: it has been read */
    int64_t pid;
    struct text words;
    struct last_reading *next;
};

/* The subject of a blocking call. */
struct reading {
    char *path;
    struct text words;
};

/* Who has asked about the whole job, and waits for the host's answer. */
struct job_inquiry {
    struct agent_chronicle *chronicle;
    struct job_asking *asking; /* NULL while it is being asked */
    uint64_t ticket;
    bool is_answered;
    struct text text;
    struct job_inquiry *next;
};

struct agent_chronicle {
    struct agent_chronicle_settings settings;
    struct event_loop *loop;
    const struct agent_workers *workers; /* NULL: not yet */
    const struct last_words *last_words; /* the same */
    struct chronicle *chronicle;
    struct chronicle_status status; /* of what has been told */
    struct event_thread *file;      /* NULL: none */
    struct event_timer *late;
    bool is_waiting;            /* it is set */
    struct blocking_pool *pool; /* NULL until there is something to read */
    struct last_reading *readings;
    struct job_inquiry *inquiries;
};

/* What the chronicle asks. */

static int64_t pid_of(void *context, int local_rank) {
    const struct agent_chronicle *chronicle = context;
    return chronicle->workers != NULL ? agent_workers_pid(chronicle->workers, local_rank) : 0;
}

static uint64_t from_standby(void *context) {
    const struct agent_chronicle *chronicle = context;
    return chronicle->settings.standby != NULL ? standby_plan_used(chronicle->settings.standby) : 0;
}

/* What a report would have in one line. */
static void append_words(struct slice content, struct text *out) {
    struct error_file error;
    if (error_file_json_read(content, &error, NULL) == FAILURE_NONE) {
        text_append(out, error.summary != NULL ? error.summary : error.message);
        error_file_clear(&error);
    }
}

/* What its error file says; false: it is not known yet. */
static bool error_words_of(
    const struct agent_chronicle *chronicle, int local_rank, int64_t pid, struct text *out) {
    const struct last_reading *reading = chronicle->readings;
    while (reading != NULL && reading->pid != pid) {
        reading = reading->next;
    }
    if (reading != NULL) {
        text_append(out, text_string(&reading->words));
        return reading->call == NULL;
    }
    if (chronicle->workers == NULL || agent_workers_pid(chronicle->workers, local_rank) != pid ||
        agent_workers_error_file(chronicle->workers, local_rank) == NULL) {
        return true; /* nobody will know them */
    }
    const struct worker_error *error = agent_workers_error(chronicle->workers, local_rank);
    if (error == NULL || error->code == FAILURE_TIMEOUT) {
        return false;
    }
    if (error->code == FAILURE_NONE) {
        append_words(bytes_slice(&error->content), out);
    }
    return true;
}

/* Without an error file, its last line on stderr. */
static bool words_of(void *context, int local_rank, int64_t pid, struct text *out) {
    const struct agent_chronicle *chronicle = context;
    return error_words_of(chronicle, local_rank, pid, out) &&
           (out->length > 0 || last_words_append(chronicle->last_words, pid, out));
}

static void told(void *context, const struct chronicle_entry *entry) {
    struct agent_chronicle *chronicle = context;
    chronicle_status_take(&chronicle->status, entry);
    agent_job_chronicle_note(chronicle->settings.job, entry);
    if (chronicle->file != NULL) {
        struct text line = {0};
        chronicle_json_write_entry(entry, &line);
        event_thread_append(chronicle->file, text_string(&line));
        text_clear(&line);
    }
    chronicle->settings.wake(chronicle->settings.context);
}

static void drop_readings(struct agent_chronicle *chronicle) {
    struct last_reading *reading;
    while ((reading = chronicle->readings) != NULL) {
        if (reading->call != NULL) {
            blocking_pool_drop(chronicle->pool, reading->call);
        }
        chronicle->readings = reading->next;
        text_clear(&reading->words);
        free(reading);
    }
}

/* Whether nothing is left to tell. */
static bool tell(struct agent_chronicle *chronicle, bool is_late) {
    bool is_all = chronicle_tell(chronicle->chronicle, is_late);
    if (is_all) {
        event_timer_stop(chronicle->late);
        chronicle->is_waiting = false;
        drop_readings(chronicle);
    }
    return is_all;
}

static void await_words(struct agent_chronicle *chronicle, struct instant now) {
    if (!chronicle->is_waiting) {
        chronicle->is_waiting = true;
        event_timer_set(chronicle->late,
            instant_after(now, duration_from_milliseconds(WORDS_PATIENCE_MILLISECONDS)));
    }
}

static void words_are_late(void *context) {
    (void)tell(context, true);
}

static void run_reading(void *subject) {
    struct reading *reading = subject;
    struct bytes content = {0};
    if (error_file_read(reading->path, ERROR_FILE_CEILING, &content, NULL) == FAILURE_NONE) {
        append_words(bytes_slice(&content), &reading->words);
    }
    bytes_clear(&content);
}

static void free_reading(void *subject) {
    struct reading *reading = subject;
    text_clear(&reading->words);
    free(reading->path);
    free(reading);
}

static void was_read(void *context, void *subject) {
    struct last_reading *last = context;
    struct reading *reading = subject;
    last->call = NULL;
    last->words = reading->words;
    reading->words = (struct text){0};
    (void)tell(last->chronicle, false);
}

static void read_last(struct agent_chronicle *chronicle, int local_rank) {
    struct reading reading = {
        memory_duplicate_string(agent_workers_error_file(chronicle->workers, local_rank)), {0}};
    const struct blocking_task task = {
        run_reading, free_reading, memory_duplicate(&reading, sizeof reading)};
    struct last_reading *last = memory_allocate(sizeof *last);
    *last = (struct last_reading){.chronicle = chronicle,
        .pid = agent_workers_pid(chronicle->workers, local_rank),
        .next = chronicle->readings};
    const struct blocking_answer answer = {was_read, last};
    chronicle->readings = last;
    if (blocking_pool_send(chronicle->pool, &task, &answer, &last->call, NULL) != FAILURE_NONE) {
        last->call = NULL;
    }
}

/* What of the old workers is still being read is forgotten when others are started. */
static void keep_words(struct agent_chronicle *chronicle) {
    if (chronicle->workers == NULL || chronicle_tell(chronicle->chronicle, false)) {
        return;
    }
    for (int rank = 0; rank < chronicle->settings.preparation->worker_count; rank++) {
        const struct worker_error *error = agent_workers_error(chronicle->workers, rank);
        if (error != NULL && error->code == FAILURE_TIMEOUT &&
            (chronicle->pool != NULL ||
                blocking_pool_new(chronicle->loop, &chronicle->pool, NULL) == FAILURE_NONE)) {
            read_last(chronicle, rank);
        }
    }
}

/* Life. */

static void forget(struct job_inquiry *inquiry) {
    struct job_inquiry **link = &inquiry->chronicle->inquiries;
    while (*link != inquiry) {
        link = &(*link)->next;
    }
    *link = inquiry->next;
    job_asking_free(inquiry->asking);
    free(inquiry);
}

/* Beside the logs, where this job keeps any: NULL where it does not. */
static char *find_path(const struct agent_chronicle_settings *settings) {
    const struct launch_config *config = settings->config;
    const struct log_directory *logs = &settings->preparation->logs;
    if (config->chronicle != NULL) {
        return text_equals(config->chronicle, "off") ? NULL
                                                     : memory_duplicate_string(config->chronicle);
    }
    bool has_logs =
        logs->run_path != NULL &&
        (!logs->is_temporary || log_plan_redirects(config, settings->preparation->worker_count));
    return has_logs ? text_format("%s/" FILE_NAME, logs->run_path) : NULL;
}

static void open_file(struct agent_chronicle *chronicle) {
    struct failure failure = {0};
    char *path = find_path(&chronicle->settings);
    const struct event_thread_settings settings = {
        .loop = chronicle->loop,
        .log = chronicle->settings.log,
        .path = path,
        .patience = duration_from_seconds(DISK_PATIENCE_SECONDS),
        .is_opened_later = true,
        .turn_at = TURN_AT_BYTES,
    };
    if (path != NULL && event_thread_new(&settings, &chronicle->file, &failure) != FAILURE_NONE) {
        log_warning(
            chronicle->settings.log, "no chronicle is written to '%s': %s", path, failure.message);
        chronicle->file = NULL;
    }
    free(path);
}

struct agent_chronicle *agent_chronicle_new(
    struct event_loop *loop, const struct agent_chronicle_settings *settings) {
    struct agent_chronicle *chronicle = memory_allocate(sizeof *chronicle);
    *chronicle = (struct agent_chronicle){.settings = *settings, .loop = loop};
    const struct chronicle_settings core = {
        .node = settings->preparation->node_name,
        .version = MUSTER_VERSION,
        .placement = settings->placement,
        .minimum_nodes = settings->config->minimum_nodes,
        .maximum_nodes = settings->config->maximum_nodes,
        .began = event_loop_now(loop),
        .began_at = event_loop_wall_time(loop),
        .pid = pid_of,
        .from_standby = from_standby,
        .words = words_of,
        .told = told,
        .context = chronicle,
    };
    chronicle->chronicle = chronicle_new(&core);
    chronicle->late = event_timer_new(loop, words_are_late, chronicle);
    open_file(chronicle);
    agent_job_chronicle_use(settings->job, chronicle->chronicle, core.began_at);
    return chronicle;
}

void agent_chronicle_free(struct agent_chronicle *chronicle) {
    if (chronicle != NULL) {
        (void)tell(chronicle, true);
        while (chronicle->inquiries != NULL) {
            forget(chronicle->inquiries);
        }
        agent_job_chronicle_use(chronicle->settings.job, NULL, (struct wall_time){0});
        event_timer_free(chronicle->late);
        blocking_pool_free(chronicle->pool);
        event_thread_free(chronicle->file);
        chronicle_free(chronicle->chronicle);
        chronicle_status_clear(&chronicle->status);
        free(chronicle);
    }
}

static void line_is_known(void *context) {
    (void)tell(context, false);
}

void agent_chronicle_know_workers(struct agent_chronicle *chronicle,
    const struct agent_workers *workers, struct last_words *last_words) {
    if (chronicle != NULL) {
        chronicle->workers = workers;
        chronicle->last_words = last_words;
    }
    if (chronicle != NULL && last_words != NULL) {
        last_words_notify(last_words, line_is_known, chronicle);
    }
}

/* What happens. */

void agent_chronicle_step(struct agent_chronicle *chronicle, enum agent_phase before,
    const struct agent_machine *machine, const struct agent_event *event,
    const struct agent_outcome *outcome) {
    if (chronicle == NULL) {
        return;
    }
    chronicle_step(chronicle->chronicle, before, machine, event, outcome);
    if (before == AGENT_JOINING && machine->phase == AGENT_STARTING) {
        keep_words(chronicle);
    }
    if (!tell(chronicle, false)) {
        await_words(chronicle, event->now);
    }
}

void agent_chronicle_note_spares(struct agent_chronicle *chronicle, int ready, int of) {
    if (chronicle != NULL) {
        chronicle_note_spares(chronicle->chronicle, event_loop_now(chronicle->loop), ready, of);
    }
}

void agent_chronicle_note_record(
    struct agent_chronicle *chronicle, const struct rendezvous_state *record) {
    for (size_t i = 0; chronicle != NULL && i < record->count; i++) {
        const struct rendezvous_node *node = &record->nodes[i];
        if (node->is_participant && !node_identity_is_muster(&node->identity)) {
            chronicle_note_foreign(chronicle->chronicle, event_loop_now(chronicle->loop),
                node->identity.address, (int)node->rank);
        }
    }
}

void agent_chronicle_note_host(struct agent_chronicle *chronicle) {
    if (chronicle != NULL) {
        chronicle_note_host(chronicle->chronicle, event_loop_now(chronicle->loop));
    }
}

void agent_chronicle_note_progress(
    struct agent_chronicle *chronicle, const struct progress_news *news) {
    if (chronicle != NULL) {
        chronicle_note_progress(chronicle->chronicle, news);
    }
}

void agent_chronicle_note_excluded(struct agent_chronicle *chronicle, const char *reason) {
    if (chronicle != NULL) {
        chronicle_note_excluded(chronicle->chronicle, event_loop_now(chronicle->loop), reason);
    }
}

void agent_chronicle_note_kept(struct agent_chronicle *chronicle, const char *reason) {
    if (chronicle != NULL) {
        chronicle_note_kept(chronicle->chronicle, event_loop_now(chronicle->loop), reason);
    }
}

bool agent_chronicle_hurry(
    struct agent_chronicle *chronicle, void (*done)(void *context), void *context) {
    if (chronicle == NULL) {
        return false;
    }
    (void)chronicle_tell(chronicle->chronicle, true);
    return agent_job_chronicle_hurry(chronicle->settings.job, done, context);
}

void agent_chronicle_note_end(struct agent_chronicle *chronicle, const char *reason) {
    if (chronicle != NULL) {
        chronicle_note_end(chronicle->chronicle, reason);
    }
}

void agent_chronicle_note_waiting(struct agent_chronicle *chronicle, int here) {
    if (chronicle != NULL) {
        chronicle_note_waiting(chronicle->chronicle, event_loop_now(chronicle->loop), here);
    }
}

void agent_chronicle_note_hang(
    struct agent_chronicle *chronicle, int local_rank, const struct job_hang *hang) {
    if (chronicle != NULL) {
        chronicle_note_hang(chronicle->chronicle, event_loop_now(chronicle->loop), local_rank,
            hang->what, hang->where, hang->silence);
    }
}

/* Of a worker's child nothing is known here. */
void agent_chronicle_note_timer(
    struct agent_chronicle *chronicle, const struct event_timer_record *timer) {
    if (chronicle == NULL || chronicle->workers == NULL) {
        return;
    }
    for (int rank = 0; rank < chronicle->settings.preparation->worker_count; rank++) {
        if (agent_workers_pid(chronicle->workers, rank) == timer->pid) {
            char *what = text_format("its timer '%s' has expired", timer->scope);
            chronicle_note_hang(chronicle->chronicle, event_loop_now(chronicle->loop), rank, what,
                NULL, (struct duration){0});
            free(what);
        }
    }
}

int agent_chronicle_failed_first(struct agent_chronicle *chronicle) {
    int place = chronicle == NULL ? -1
                                  : chronicle_status_find(&chronicle->status,
                                        chronicle->settings.preparation->node_name);
    return place < 0 ? 0 : chronicle->status.nodes[place].failed_first;
}

/* Answers. */

static void write_status(struct agent_chronicle *chronicle, struct text *out) {
    const struct agent_preparation *preparation = chronicle->settings.preparation;
    struct text_list seen_from = {0};
    text_list_add(&seen_from, preparation->node_name);
    const struct chronicle_view view = {.run_id = preparation->run_id,
        .log_dir = preparation->logs.run_path,
        .seen_from = &seen_from,
        .has_nodes = true};
    chronicle_status_advance(
        &chronicle->status, chronicle_time(chronicle->chronicle, event_loop_now(chronicle->loop)));
    chronicle_json_write_status(&chronicle->status, &view, out);
    text_list_clear(&seen_from);
}

/* Whether it is `name`, or asks for what is after a number. */
static bool is_asked_for(const char *path, const char *name, int64_t *out_after) {
    static const char after[] = "?after=";
    size_t length = strlen(name);
    *out_after = 0;
    return text_starts_with(path, name) &&
           (path[length] == '\0' || (text_starts_with(path + length, after) &&
                                        text_parse_integer(path + length + sizeof after - 1,
                                            out_after) == FAILURE_NONE));
}

/* Of the whole job. */

static void host_answered(void *context, const struct failure *failure, struct slice answer) {
    struct job_inquiry *inquiry = context;
    const struct agent_chronicle_settings *settings = &inquiry->chronicle->settings;
    char *why = text_format("%s\n", failure != NULL ? failure->message : "");
    snapshot_answer_append(failure == NULL ? "200 OK" : "503 Service Unavailable",
        failure == NULL ? answer : slice_from_string(why), &inquiry->text);
    free(why);
    inquiry->is_answered = true;
    if (inquiry->asking != NULL) {
        settings->answer(settings->context, inquiry->ticket, &inquiry->text);
        forget(inquiry);
    }
}

/* False: it is answered later. */
static bool ask_host(struct agent_chronicle *chronicle, enum job_question_kind kind, int64_t after,
    uint64_t ticket, struct text *out) {
    struct job_inquiry *inquiry = memory_allocate(sizeof *inquiry);
    *inquiry = (struct job_inquiry){
        .chronicle = chronicle, .ticket = ticket, .next = chronicle->inquiries};
    chronicle->inquiries = inquiry;
    inquiry->asking =
        agent_job_chronicle_ask(chronicle->settings.job, kind, after, host_answered, inquiry);
    if (!inquiry->is_answered) {
        return false;
    }
    *out = inquiry->text;
    forget(inquiry);
    return true;
}

/* Of this node. */

struct piece {
    struct snapshot_question *question;
    struct text *out;
    bool is_full;
};

static void add_to_piece(void *context, const struct chronicle_entry *entry) {
    struct piece *piece = context;
    if (entry->seq <= piece->question->place || piece->is_full) {
        return;
    }
    chronicle_json_write_entry(entry, piece->out);
    piece->question->place = entry->seq;
    piece->is_full = piece->out->length >= SNAPSHOT_PIECE_BYTES - CHRONICLE_LINE_MAXIMUM;
}

/* Entries, of which the last is named before them: whoever gets less knows that this is not all. */
static enum snapshot_answer answer_entries(struct agent_chronicle *chronicle,
    struct snapshot_question *question, int64_t after, bool is_followed, struct text *out) {
    struct piece piece = {.question = question, .out = out};
    if (question->place == 0) {
        int64_t last = chronicle_last_told(chronicle->chronicle);
        text_append_format(out,
            "HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\nMuster-Last: %" PRId64
            "\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n",
            last);
        question->place = after > 0 ? after : 0;
        question->place = question->place == 0 ? -1 : question->place;
    }
    chronicle_each_after(chronicle->chronicle, question->place, add_to_piece, &piece);
    return piece.is_full ? SNAPSHOT_PIECE : is_followed ? SNAPSHOT_FOLLOWED : SNAPSHOT_WHOLE;
}

enum snapshot_answer agent_chronicle_answer(
    struct agent_chronicle *chronicle, struct snapshot_question *question, struct text *out) {
    static const char known[] =
        "there are /v1/status, /v1/events?after=SEQ and /v1/follow?after=SEQ of this node, and of "
        "the job /v1/job/status (with ?nodes=1: one by one) and /v1/job/events?after=SEQ\n";
    const char *path = question->path;
    struct text body = {0};
    int64_t after;
    if (is_asked_for(path, "/v1/job/events", &after)) {
        return ask_host(chronicle, JOB_QUESTION_EVENTS, after, question->ticket, out)
                   ? SNAPSHOT_WHOLE
                   : SNAPSHOT_LATER;
    }
    if (text_equals(path, "/v1/job/status")) {
        return ask_host(chronicle, JOB_QUESTION_STATUS, 0, question->ticket, out) ? SNAPSHOT_WHOLE
                                                                                  : SNAPSHOT_LATER;
    }
    if (text_equals(path, "/v1/job/status?nodes=1")) {
        return ask_host(chronicle, JOB_QUESTION_NODES, 0, question->ticket, out) ? SNAPSHOT_WHOLE
                                                                                 : SNAPSHOT_LATER;
    }
    if (is_asked_for(path, "/v1/events", &after)) {
        return answer_entries(chronicle, question, after, false, out);
    }
    if (is_asked_for(path, "/v1/follow", &after)) {
        return answer_entries(chronicle, question, after, true, out);
    }
    bool is_found = text_equals(path, "/v1/status");
    if (is_found) {
        write_status(chronicle, &body);
    } else {
        text_append(&body, known);
    }
    snapshot_answer_append(is_found ? "200 OK" : "404 Not Found",
        (struct slice){(const uint8_t *)text_string(&body), body.length}, out);
    text_clear(&body);
    return SNAPSHOT_WHOLE;
}
