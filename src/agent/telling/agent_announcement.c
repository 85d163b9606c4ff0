/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/telling/agent_announcement.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "host/loop/blocking_pool.h"
#include "host/loop/snapshot_socket.h"
#include "host/telling/job_directory.h"

/* How long a disk that does not answer may hold up the end of a job. */
#define DISK_PATIENCE_SECONDS 5

/* An agent that waits for others is announced then. Most start workers sooner, and have something
 * to say that lasts; until then nothing takes CPU time from the start of the workers. */
#define WAITING_MOMENT_MILLISECONDS 100

/* The subject of a blocking call. */
struct announcing {
    struct text_list places;
    char name[JOB_POSTING_NAME_SIZE];
    char *text;              /* NULL: only the old one is removed */
    struct job_posting old;  /* written again, or removed when the new one is there */
    struct job_posting made; /* still here when nobody takes it: removed, too */
    enum failure_code code;
    struct failure failure;
};

struct agent_announcement {
    struct event_loop *loop;
    const struct text_list *environment;
    const struct node_process *process;
    const struct log *log;
    struct blocking_pool *pool;  /* NULL until there is something to do */
    struct blocking_call *call;  /* NULL: nothing is being written */
    char *text;                  /* what is announced, or about to be */
    bool is_outdated;            /* what is being written: the text has changed */
    bool is_refusal_told;        /* one line is enough for a job */
    bool is_ending;              /* the loop runs only until nothing is being written */
    struct event_timer *waiting; /* until the workers start, or it is worth saying that they wait */
    struct job_posting standing; /* what was written last */
    struct job_announcement job;
    struct snapshot_socket *socket; /* NULL: none */
    bool has_no_socket;             /* it could not be made */
    /* NULL: nobody asks */
    enum snapshot_answer (*answer)(
        void *context, struct snapshot_question *question, struct text *out);
    void *context;
};

/* On the blocking call's thread. */

static void carry_out(void *subject) {
    struct announcing *announcing = subject;
    if (announcing->text != NULL && job_posting_rewrite(&announcing->old, announcing->text)) {
        announcing->made = announcing->old;
        announcing->old = (struct job_posting){0};
    } else if (announcing->text != NULL) {
        announcing->code = job_directory_post(&announcing->places, announcing->name,
            announcing->text, &announcing->made, &announcing->failure);
    }
    job_posting_remove(&announcing->old);
}

static void free_announcing(void *subject) {
    struct announcing *announcing = subject;
    job_posting_remove(&announcing->old);
    job_posting_remove(&announcing->made);
    text_list_clear(&announcing->places);
    free(announcing->text);
    free(announcing);
}

/* On the loop. */

static struct blocking_task make_task(struct agent_announcement *announcement, bool is_end) {
    struct announcing *announcing = memory_allocate(sizeof *announcing);
    announcing->old = announcement->standing;
    announcement->standing = (struct job_posting){0};
    if (!is_end) {
        job_directory_places(announcement->environment, &announcing->places);
        node_process_write(announcement->process, announcing->name);
        announcing->text = text_format("%s", announcement->text);
    }
    return (struct blocking_task){.run = carry_out, .free = free_announcing, .subject = announcing};
}

/* A directory that is not to be trusted is somebody's mistake, or worse; a machine without a
 * place to write to is what it is. */
static void say_refusal(struct agent_announcement *announcement, const struct failure *failure) {
    if (!announcement->is_refusal_told) {
        announcement->is_refusal_told = true;
        log_record(announcement->log,
            failure->code == FAILURE_INVALID ? LOG_LEVEL_WARNING : LOG_LEVEL_INFO, LOG_ORIGIN,
            "`muster store` will not find this job by itself: %s", failure->message);
    }
}

static void begin(struct agent_announcement *announcement);

static void word(struct agent_announcement *announcement) {
    struct text text = {0};
    job_announcement_write(&announcement->job, &text);
    free(announcement->text);
    announcement->text = text_take(&text);
}

/* Says all that is known; the same is written again, for the file may have been removed. */
static void say(void *context) {
    struct agent_announcement *announcement = context;
    event_timer_stop(announcement->waiting);
    word(announcement);
    announcement->is_outdated = true;
    if (announcement->call == NULL) {
        begin(announcement);
    }
}

static void set_fact(
    struct agent_announcement *announcement, enum job_fact fact, char *text_taken) {
    free(announcement->job.facts[fact]);
    announcement->job.facts[fact] = text_taken;
}

/* Beside the file, whose disk has just answered, so that no thread is needed for either. It has the
 * same name: who removes a file that a killed agent has left removes its socket. */
static void open_socket(struct agent_announcement *announcement) {
    static const char prefix[] = "job-";
    const char *path = announcement->standing.path;
    struct failure failure = {0};
    if (path == NULL || announcement->answer == NULL || announcement->socket != NULL ||
        announcement->has_no_socket) {
        return;
    }
    const char *name = strrchr(path, '/') + 1;
    char *place = text_format(
        "%.*sask-%s", (int)(name - path), path, name + (text_starts_with(name, prefix) ? 4 : 0));
    if (snapshot_socket_new_asked(announcement->loop, place, announcement->answer,
            announcement->context, &announcement->socket, &failure) == FAILURE_NONE) {
        set_fact(announcement, JOB_FACT_SOCKET, place);
        word(announcement);
        event_timer_stop(announcement->waiting);
        if (!job_posting_rewrite(&announcement->standing, announcement->text)) {
            say(announcement);
        }
    } else {
        announcement->has_no_socket = true;
        log_info(announcement->log, "`muster status` will not find this job: %s", failure.message);
        free(place);
    }
}

static void written(void *context, void *subject) {
    struct agent_announcement *announcement = context;
    struct announcing *announcing = subject;
    announcement->call = NULL;
    announcement->standing = announcing->made;
    announcing->made = (struct job_posting){0};
    if (announcing->code != FAILURE_NONE) {
        say_refusal(announcement, &announcing->failure);
    }
    if (announcement->is_ending) {
        event_loop_stop(announcement->loop);
    } else if (announcement->is_outdated) {
        begin(announcement);
    } else {
        open_socket(announcement);
    }
}

static void begin(struct agent_announcement *announcement) {
    struct failure failure = {0};
    enum failure_code code = FAILURE_NONE;
    announcement->is_outdated = false;
    if (announcement->pool == NULL) {
        code = blocking_pool_new(announcement->loop, &announcement->pool, &failure);
    }
    if (code == FAILURE_NONE) {
        const struct blocking_task task = make_task(announcement, false);
        const struct blocking_answer answer = {written, announcement};
        code =
            blocking_pool_send(announcement->pool, &task, &answer, &announcement->call, &failure);
    }
    if (code != FAILURE_NONE) {
        announcement->call = NULL;
        say_refusal(announcement, &failure);
    }
}

struct agent_announcement *agent_announcement_new(struct event_loop *loop,
    const struct text_list *environment, const struct node_process *process,
    const struct log *log) {
    const struct agent_announcement initial = {
        .loop = loop, .environment = environment, .process = process, .log = log};
    struct agent_announcement *announcement = memory_duplicate(&initial, sizeof initial);
    announcement->waiting = event_timer_new(loop, say, announcement);
    if (node_process_is_known(process)) { /* the file is no announcement yet, and has its lock */
        announcement->text = memory_duplicate_string("");
        begin(announcement);
    }
    return announcement;
}

void agent_announcement_tell(
    struct agent_announcement *announcement, const struct node_placement *placement) {
    if (announcement == NULL) {
        return;
    }
    struct job_announcement *job = &announcement->job;
    free(job->run_id);
    free(job->host);
    job->run_id = memory_duplicate_string(placement->run_id);
    job->host = memory_duplicate_string(placement->master_address);
    job->port = placement->master_port;
    job->pid = getpid();
    set_fact(announcement, JOB_FACT_STATE, memory_duplicate_string("running"));
    say(announcement);
}

void agent_announcement_open(struct agent_announcement *announcement, struct job_announcement *job,
    enum snapshot_answer (*answer)(
        void *context, struct snapshot_question *question, struct text *out),
    void *context) {
    announcement->job = *job;
    *job = (struct job_announcement){0};
    announcement->answer = answer;
    announcement->context = context;
    announcement->job.pid = getpid();
    set_fact(announcement, JOB_FACT_STATE, memory_duplicate_string("waiting"));
    event_timer_set(
        announcement->waiting, instant_after(event_loop_now(announcement->loop),
                                   duration_from_milliseconds(WAITING_MOMENT_MILLISECONDS)));
}

void agent_announcement_answer(
    struct agent_announcement *announcement, uint64_t ticket, struct text *text_taken) {
    if (announcement != NULL && announcement->socket != NULL) {
        snapshot_socket_answer(announcement->socket, ticket, text_taken);
    } else {
        text_clear(text_taken);
    }
}

void agent_announcement_wake(struct agent_announcement *announcement) {
    if (announcement != NULL && announcement->socket != NULL) {
        snapshot_socket_wake(announcement->socket);
    }
}

static void patience_is_over(void *context) {
    struct agent_announcement *announcement = context;
    blocking_pool_drop(announcement->pool, announcement->call);
    announcement->call = NULL;
    event_loop_stop(announcement->loop);
}

/* What is being written would stay behind otherwise. */
static void await_call(struct agent_announcement *announcement) {
    struct event_timer *patience =
        event_timer_new(announcement->loop, patience_is_over, announcement);
    event_timer_set(patience, instant_after(event_loop_now(announcement->loop),
                                  duration_from_seconds(DISK_PATIENCE_SECONDS)));
    announcement->is_ending = true;
    while (announcement->call != NULL) {
        event_loop_run(announcement->loop); /* others may stop it, too */
    }
    event_timer_free(patience);
}

static void remove_standing(struct agent_announcement *announcement) {
    struct failure ignored = {0}; /* whoever looks next removes it */
    const struct blocking_task task = make_task(announcement, true);
    if (blocking_task_run_within(
            &task, duration_from_seconds(DISK_PATIENCE_SECONDS), NULL, &ignored) == FAILURE_NONE) {
        free_announcing(task.subject);
    }
}

void agent_announcement_free(struct agent_announcement *announcement) {
    if (announcement == NULL) {
        return;
    }
    event_timer_free(announcement->waiting);
    if (announcement->call != NULL) {
        await_call(announcement);
    }
    blocking_pool_free(announcement->pool);
    if (announcement->standing.path != NULL) {
        remove_standing(announcement);
    }
    snapshot_socket_free(announcement->socket);
    job_announcement_clear(&announcement->job);
    free(announcement->text);
    free(announcement);
}
