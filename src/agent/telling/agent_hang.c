/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/telling/agent_hang.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "wire/telling/stacks_json.h"

/* For a look at all workers of the node, where --evidence-timeout gives no longer. */
#define LOOK_SECONDS 5
/* How long the host waits after it was told, since other nodes may be about to tell the same. */
#define JUDGE_MILLISECONDS 200
/* A node asks so soon what the host has found, … (to wait for the key would keep all else that is
 * asked on this connection behind it) */
#define FIRST_ASK_MILLISECONDS 500
/* … and then each … */
#define ASK_SECONDS 2
/* … or so much later that all nodes together ask no more than so often in a second. */
#define ASKS_A_SECOND 500
/* So long nobody answers before a node says what it knows of itself. */
#define ALONE_AFTER_SECONDS 10
/* So long a worker may take to die of SIGKILL. */
#define DEATH_SECONDS 10

struct agent_hang {
    struct agent_hang_settings settings;
    struct event_loop *loop;
    bool is_looking;
    bool has_found;               /* for this standstill */
    bool is_told;                 /* to who hosts the store */
    struct instant looked;        /* since then somebody to tell is looked for */
    struct standstill standstill; /* of this node; zero: its workers take steps */
    struct event_timer *asking;
    struct event_timer *death; /* of this worker is awaited */
    int dying_local_rank;
    struct event_timer *judging;
    struct job_hang_watch *watch; /* as the host */
};

/* The host. */

static void leave_in_store(struct agent_hang *hang, const struct job_hang *found) {
    struct text text = {0};
    job_hang_json_write(found, &text);
    const struct store_client_call call = {
        .request = {.operation = STORE_SET, .value = slice_from_string(text_string(&text))}};
    (void)agent_job_chronicle_send(hang->settings.job, call, TELLING_KEY_HANG);
    text_clear(&text);
}

static void remove_from_store(struct agent_hang *hang) {
    const struct store_client_call call = {.request = {.operation = STORE_DELETE}};
    (void)agent_job_chronicle_send(hang->settings.job, call, TELLING_KEY_HANG);
}

static void find(struct agent_hang *hang, const struct job_hang *found, bool is_of_job) {
    event_timer_stop(hang->asking);
    hang->has_found = true;
    hang->dying_local_rank = hang->settings.found(hang->settings.context, found, is_of_job);
    if (hang->dying_local_rank >= 0) {
        event_timer_set(hang->death,
            instant_after(event_loop_now(hang->loop), duration_from_seconds(DEATH_SECONDS)));
    }
}

static void is_not_dead(void *context) {
    struct agent_hang *hang = context;
    hang->settings.stuck(hang->settings.context, hang->dying_local_rank,
        instant_until(hang->looked, event_loop_now(hang->loop)));
}

static void judge(void *context) {
    struct agent_hang *hang = context;
    struct chronicle_status status = {0};
    struct job_hang found = {0};
    if (agent_job_chronicle_write_status(hang->settings.job, &status) &&
        job_hang_watch_judge(hang->watch, &status, &found)) {
        leave_in_store(hang, &found);
        find(hang, &found, true);
    }
    chronicle_status_clear(&status);
    job_hang_clear(&found);
}

/* That it goes on makes what was found before old. */
static void take(struct agent_hang *hang, struct standstill *told_taken) {
    if (told_taken->silence.nanoseconds == 0) {
        remove_from_store(hang);
    }
    job_hang_watch_take(hang->watch, told_taken);
    event_timer_set(hang->judging,
        instant_after(event_loop_now(hang->loop), duration_from_milliseconds(JUDGE_MILLISECONDS)));
}

void agent_hang_take_told(struct agent_hang *hang, struct slice told) {
    struct standstill standstill;
    if (hang != NULL && standstill_json_read(told, &standstill) == FAILURE_NONE) {
        take(hang, &standstill);
    }
}

/* A node. */

/* False: nobody is there to be told. */
static bool tell(struct agent_hang *hang) {
    struct text text = {0};
    standstill_json_write(&hang->standstill, &text);
    struct slice told = slice_from_string(text_string(&text));
    bool is_told = agent_job_chronicle_is_host(hang->settings.job);
    if (is_told) {
        agent_hang_take_told(hang, told);
    } else {
        const struct store_client_call call = {
            .request = {.operation = STORE_QUEUE_PUSH, .value = told}};
        is_told = agent_job_chronicle_send(hang->settings.job, call, TELLING_KEY_ASKED);
    }
    text_clear(&text);
    return is_told;
}

static void ask_later(struct agent_hang *hang, struct duration delay) {
    event_timer_set(hang->asking, instant_after(event_loop_now(hang->loop), delay));
}

static struct duration ask_pause(const struct agent_hang *hang) {
    double apart = (double)hang->settings.placement->group_world_size / ASKS_A_SECOND;
    return duration_from_seconds(apart > ASK_SECONDS ? apart : ASK_SECONDS);
}

/* What the host has found in this round; of an earlier one it may still be there. */
static void host_said(void *context, const struct store_client_result *result) {
    struct agent_hang *hang = context;
    struct job_hang found;
    if (hang->standstill.silence.nanoseconds == 0 || hang->has_found ||
        result->code != FAILURE_NONE || result->reply->list.count != 1 ||
        result->reply->list.items[0].length == 0 ||
        job_hang_json_read(result->reply->list.items[0], &found) != FAILURE_NONE) {
        return;
    }
    if (found.round == hang->standstill.round) {
        find(hang, &found, true);
    }
    job_hang_clear(&found);
}

static bool ask_host(struct agent_hang *hang) {
    const struct store_client_call call = {
        .request = {.operation = STORE_MULTI_GET}, .done = host_said, .context = hang};
    return agent_job_chronicle_is_host(hang->settings.job) ||
           agent_job_chronicle_send(hang->settings.job, call, TELLING_KEY_HANG);
}

static void find_alone(struct agent_hang *hang) {
    struct job_hang found;
    job_hang_describe(
        &hang->standstill.places, hang->standstill.silence, hang->standstill.round, &found);
    find(hang, &found, hang->settings.placement->group_world_size == 1);
    job_hang_clear(&found);
}

/* Again and again, until the host has found something, or a worker takes a step. Who hosts the
 * store by now may be another one than was told. */
static void ask(void *context) {
    struct agent_hang *hang = context;
    struct instant patience =
        instant_after(hang->looked, duration_from_seconds(ALONE_AFTER_SECONDS));
    hang->is_told = (hang->is_told || tell(hang)) && ask_host(hang);
    if (!hang->is_told && !instant_is_before(event_loop_now(hang->loop), patience)) {
        find_alone(hang);
        return;
    }
    ask_later(hang, ask_pause(hang));
}

/* Looking. */

static void add_place(
    struct agent_hang *hang, int local_rank, const char *place, const char *words) {
    folded_stacks_add(&hang->standstill.places, place, words, true,
        hang->settings.placement->ranks.base_rank + local_rank, 1);
}

/* Whoever the kernel does not let run is at no place where others may be, too. */
static void seen(void *context, int local_rank, const struct hang_evidence_result *result) {
    struct agent_hang *hang = context;
    struct hang_summary bare = result->summary;
    struct text words = {0};
    bool is_held = bare.state == 'D' || bare.state == 'T' || bare.state == 't';
    char *place = bare.stack != NULL && !is_held
                      ? text_format("%.*s\n", (int)strcspn(bare.stack, "\n"), bare.stack)
                      : NULL;
    bare.thread_count = 0;
    if (!result->is_complete && bare.state == '\0') {
        text_append_format(&words, "not to be looked at");
    } else if (place == NULL) {
        hang_summary_append(&bare, &words);
    }
    if (hang->is_looking) {
        add_place(hang, local_rank, place, text_string(&words));
    }
    text_clear(&words);
    free(place);
}

static void all_seen(void *context) {
    struct agent_hang *hang = context;
    if (!hang->is_looking) {
        return;
    }
    hang->is_looking = false;
    for (int rank = 0; hang->standstill.places.count == 0 && rank < hang->settings.worker_count;
         rank++) {
        add_place(hang, rank, NULL, "not to be looked at");
    }
    hang->looked = event_loop_now(hang->loop);
    hang->is_told = tell(hang);
    ask_later(hang, duration_from_milliseconds(FIRST_ASK_MILLISECONDS));
}

static void look(struct agent_hang *hang, struct duration silence) {
    const struct agent_hang_settings *settings = &hang->settings;
    struct agent_evidence_subject *subjects =
        memory_allocate(((size_t)settings->worker_count + 1) * sizeof *subjects);
    struct duration bound = duration_from_seconds(LOOK_SECONDS);
    char *reason = text_format(
        "no worker of this node has taken a step for %.1f s", duration_seconds_told(silence));
    struct agent_evidence_order order = {.subjects = subjects,
        .reason = reason,
        .bound = settings->config->evidence_timeout.nanoseconds > bound.nanoseconds
                     ? settings->config->evidence_timeout
                     : bound,
        .done = all_seen,
        .context = hang,
        .seen = seen};
    for (int rank = 0; rank < settings->worker_count; rank++) {
        pid_t pid = agent_workers_pid(settings->workers, rank);
        if (pid > 0 && agent_workers_find(settings->workers, pid) == rank) {
            subjects[order.count++] = (struct agent_evidence_subject){pid, rank};
        }
    }
    log_info(settings->log, "%s: it is looked at, and others may tell the same of theirs", reason);
    hang->is_looking = true;
    agent_evidence_gather(settings->evidence, &order);
    free(reason);
    free(subjects);
}

/* Life. */

void agent_hang_end(struct agent_hang *hang) {
    if (hang != NULL) {
        event_timer_stop(hang->asking);
        event_timer_stop(hang->death);
        standstill_clear(&hang->standstill);
        hang->is_looking = hang->is_told = hang->has_found = false;
    }
}

void agent_hang_stand(struct agent_hang *hang, struct duration silence) {
    if (hang == NULL) {
        return;
    }
    bool was_told = hang->is_told;
    agent_hang_end(hang);
    hang->standstill = (struct standstill){.node_rank = hang->settings.placement->group_rank,
        .round = hang->settings.placement->round,
        .silence = silence};
    if (silence.nanoseconds > 0) {
        look(hang, silence);
    } else if (was_told) {
        (void)tell(hang);
    }
}

struct agent_hang *agent_hang_new(
    struct event_loop *loop, const struct agent_hang_settings *settings) {
    if (!settings->config->hang.is_wanted) {
        return NULL;
    }
    struct agent_hang *hang = memory_allocate(sizeof *hang);
    hang->settings = *settings;
    hang->loop = loop;
    hang->asking = event_timer_new(loop, ask, hang);
    hang->judging = event_timer_new(loop, judge, hang);
    hang->death = event_timer_new(loop, is_not_dead, hang);
    hang->watch = job_hang_watch_new();
    return hang;
}

void agent_hang_free(struct agent_hang *hang) {
    if (hang != NULL) {
        agent_hang_end(hang);
        event_timer_free(hang->asking);
        event_timer_free(hang->judging);
        event_timer_free(hang->death);
        job_hang_watch_free(hang->watch);
        free(hang);
    }
}
