/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/telling/agent_chronicle.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/memory.h"
#include "core/telling/chronicle_status.h"
#include "core/workers/log_plan.h"
#include "host/failure/error_file.h"
#include "host/loop/blocking_pool.h"
#include "host/telling/event_thread.h"
#include "wire/failure/error_file_json.h"
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

struct agent_chronicle {
    struct agent_chronicle_settings settings;
    struct event_loop *loop;
    const struct agent_workers *workers; /* NULL: not yet */
    struct chronicle *chronicle;
    struct chronicle_status status; /* of what has been told */
    struct event_thread *file;      /* NULL: none */
    struct event_timer *late;
    bool is_waiting;            /* it is set */
    struct blocking_pool *pool; /* NULL until there is something to read */
    struct last_reading *readings;
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

static bool words_of(void *context, int local_rank, int64_t pid, struct text *out) {
    const struct agent_chronicle *chronicle = context;
    const struct last_reading *reading = chronicle->readings;
    while (reading != NULL && reading->pid != pid) {
        reading = reading->next;
    }
    if (reading != NULL) {
        text_append(out, text_string(&reading->words));
        return reading->call == NULL;
    }
    if (pid_of(context, local_rank) != pid ||
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

static void told(void *context, const struct chronicle_entry *entry) {
    struct agent_chronicle *chronicle = context;
    chronicle_status_take(&chronicle->status, entry);
    if (chronicle->file != NULL) {
        struct text line = {0};
        chronicle_json_write_entry(entry, &line);
        event_thread_append(chronicle->file, text_string(&line));
        text_clear(&line);
    }
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
    return chronicle;
}

void agent_chronicle_free(struct agent_chronicle *chronicle) {
    if (chronicle != NULL) {
        (void)tell(chronicle, true);
        event_timer_free(chronicle->late);
        blocking_pool_free(chronicle->pool);
        event_thread_free(chronicle->file);
        chronicle_free(chronicle->chronicle);
        chronicle_status_clear(&chronicle->status);
        free(chronicle);
    }
}

void agent_chronicle_know_workers(
    struct agent_chronicle *chronicle, const struct agent_workers *workers) {
    if (chronicle != NULL) {
        chronicle->workers = workers;
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

void agent_chronicle_note_waiting(struct agent_chronicle *chronicle, int here) {
    if (chronicle != NULL) {
        chronicle_note_waiting(chronicle->chronicle, event_loop_now(chronicle->loop), here);
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
            chronicle_note_hang(chronicle->chronicle, event_loop_now(chronicle->loop), rank, what);
            free(what);
        }
    }
}

/* Answers. */

static void write_entry(void *context, const struct chronicle_entry *entry) {
    chronicle_json_write_entry(entry, context);
}

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

static bool answer(struct agent_chronicle *chronicle, const char *path, struct text *out) {
    static const char events[] = "/v1/events";
    static const char after[] = "/v1/events?after=";
    int64_t seq = 0;
    if (text_equals(path, "/v1/status")) {
        write_status(chronicle, out);
        return true;
    }
    if (!text_equals(path, events) &&
        (!text_starts_with(path, after) ||
            text_parse_integer(path + sizeof after - 1, &seq) != FAILURE_NONE)) {
        return false;
    }
    chronicle_each_after(chronicle->chronicle, seq, write_entry, out);
    return true;
}

void agent_chronicle_answer(struct agent_chronicle *chronicle, const char *path, struct text *out) {
    struct text body = {0};
    bool is_found = answer(chronicle, path, &body);
    if (!is_found) {
        text_append(&body, "there are /v1/status and /v1/events?after=SEQ\n");
    }
    text_append_format(out,
        "HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\nCache-Control: no-store\r\n"
        "Connection: close\r\n\r\n",
        is_found ? "200 OK" : "404 Not Found",
        is_found ? "application/json" : "text/plain; charset=utf-8", body.length);
    text_append_bytes(out, text_string(&body), body.length);
    text_clear(&body);
}
