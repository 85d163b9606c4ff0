/* SPDX-License-Identifier: BSD-3-Clause */
#include "library/rendezvous_object.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/memory.h"
#include "core/rendezvous/rendezvous_key.h"
#include "host/loop/clock.h"
#include "host/network/tcp_listener.h"

#define LOOPBACK "127.0.0.1"
#define DEFAULT_LINGERING_SECONDS 30

/* What the program is told. It may free the rendezvous then, which is done later. */

static void answer(struct muster_rendezvous *rendezvous, enum muster_error error) {
    struct rendezvous_asking asked = rendezvous->asked;
    if (!asked.is_asked || rendezvous->is_freed) {
        return;
    }
    rendezvous->asked = (struct rendezvous_asking){0};
    if (error == MUSTER_OK) {
        rendezvous->is_told = true;
        asked.done(asked.context, MUSTER_OK, "", &rendezvous->info);
    } else {
        asked.done(asked.context, error, rendezvous->end.message, NULL);
    }
}

static void end(struct muster_rendezvous *rendezvous, enum muster_error error, const char *reason) {
    rendezvous->is_over = true;
    rendezvous->has_world = false;
    rendezvous->end.error = error;
    snprintf(rendezvous->end.message, sizeof rendezvous->end.message, "%s", reason);
    answer(rendezvous, error);
    rendezvous_object_wake(rendezvous);
}

static void write_log(
    void *context, enum log_level level, const char *origin, const char *message) {
    const struct muster_rendezvous *rendezvous = context;
    if (rendezvous->settings.log != NULL && !rendezvous->is_freed) {
        rendezvous->settings.log(
            rendezvous->settings.context, 10 * ((int)level + 1), origin, message);
    }
}

/* Joining. */

static void join(struct muster_rendezvous *rendezvous) {
    rendezvous->is_joining = true;
    rendezvous->has_world = false;
    rendezvous->is_round_over = false;
    rendezvous_member_join(rendezvous->node);
}

/* A node that is in a round begins the next one: TorchElastic's handler leaves its round first. */
static void join_next(struct muster_rendezvous *rendezvous) {
    if (rendezvous->is_over) {
        answer(rendezvous, rendezvous->end.error);
    } else if (rendezvous->is_met && !rendezvous->is_told && !rendezvous->is_round_over) {
        answer(rendezvous, MUSTER_OK); /* nobody waited for it when it came */
    } else if (!rendezvous->is_joining) {
        if (rendezvous->has_world && !rendezvous->is_round_over) {
            rendezvous_member_tell(
                rendezvous->node, (struct rendezvous_event){.kind = RENDEZVOUS_EVENT_RESTART_ASKED,
                                      .reason = "a node asks for the next round"});
        }
        join(rendezvous);
    }
}

static void do_soon(void *context) {
    struct muster_rendezvous *rendezvous = context;
    if (rendezvous->is_next_asked) {
        rendezvous->is_next_asked = false;
        join_next(rendezvous);
    }
    if (rendezvous->is_close_asked && !rendezvous->is_freed) {
        rendezvous->is_close_asked = false;
        rendezvous_member_close(rendezvous->node);
    }
}

void rendezvous_object_ask_next(struct muster_rendezvous *rendezvous) {
    rendezvous->is_next_asked = true;
    event_timer_set(rendezvous->soon, clock_now());
}

void rendezvous_object_ask_close(struct muster_rendezvous *rendezvous) {
    rendezvous->is_close_asked = true;
    event_timer_set(rendezvous->soon, clock_now());
}

/* What the node tells. */

static void perform(void *context, const struct rendezvous_effect *effect) {
    const struct muster_rendezvous *rendezvous = context;
    if (rendezvous->endpoint != NULL) {
        rendezvous_endpoint_perform(rendezvous->endpoint, effect);
    } else {
        rendezvous_own_backend_perform(rendezvous->own, effect);
    }
}

static void name_round(
    struct muster_rendezvous *rendezvous, const struct rendezvous_effect *effect) {
    struct text key = {0};
    text_clear(&rendezvous->node_name);
    text_clear(&rendezvous->prefix);
    node_identity_describe(&effect->world.identity, &rendezvous->node_name);
    rendezvous_key_write_round(rendezvous->config.run_id, effect->world.round, &key);
    /* the folder, as a prefix store has it: without the '/' on either side */
    text_append_bytes(&rendezvous->prefix, text_string(&key) + 1, key.length - 2);
    text_clear(&key);
    rendezvous->info = (struct muster_rendezvous_info){
        .round = effect->world.round,
        .rank = effect->world.group_rank,
        .world_size = effect->world.node_count,
        .node = text_string(&rendezvous->node_name),
        .store_prefix = text_string(&rendezvous->prefix),
    };
}

/* As TorchElastic's get_free_port: whoever is quicker may take it. */
static int find_port(const struct muster_rendezvous *rendezvous) {
    int fd;
    int port = 0;
    if (rendezvous->settings.master_port > 0) {
        return rendezvous->settings.master_port;
    }
    if (tcp_listener_open(NULL, 0, &fd, &port, NULL) == FAILURE_NONE) {
        close(fd);
    }
    return port;
}

static void meet_at_endpoint(
    struct muster_rendezvous *rendezvous, const struct rendezvous_effect *effect) {
    bool is_host = rendezvous->hosted_port > 0;
    rendezvous->info.store_host = is_host ? LOOPBACK : rendezvous->config.dynamic.host;
    rendezvous->info.store_port =
        is_host ? rendezvous->hosted_port : rendezvous->config.dynamic.port;
    if (rendezvous->settings.is_torchrun) {
        rendezvous->is_met = true;
        answer(rendezvous, MUSTER_OK);
    } else if (effect->world.group_rank == 0) {
        const char *address = rendezvous->master_addr != NULL ? rendezvous->master_addr
                                                              : effect->world.identity.address;
        rendezvous_endpoint_say(
            rendezvous->endpoint, effect->world.round, address, find_port(rendezvous));
    } else {
        rendezvous_endpoint_ask(rendezvous->endpoint, effect->world.round);
    }
}

static void joined(void *context, const struct rendezvous_effect *effect) {
    struct muster_rendezvous *rendezvous = context;
    rendezvous->is_joining = false;
    rendezvous->has_world = true;
    rendezvous->is_round_over = false;
    rendezvous->is_told = false;
    rendezvous->is_met = rendezvous->endpoint == NULL;
    name_round(rendezvous, effect);
    if (rendezvous->endpoint != NULL) {
        meet_at_endpoint(rendezvous, effect);
    } else {
        answer(rendezvous, MUSTER_OK);
    }
}

static void met(void *context, const char *master, int port) {
    struct muster_rendezvous *rendezvous = context;
    free(rendezvous->met_at);
    rendezvous->met_at = memory_duplicate_string(master);
    rendezvous->info.master_addr = rendezvous->met_at;
    rendezvous->info.master_port = port;
    rendezvous->is_met = true;
    answer(rendezvous, MUSTER_OK);
}

static void not_met(void *context, const char *reason) {
    end(context, MUSTER_ERROR_PROTOCOL, reason);
}

/* Who still waits to be told of the round, waits for the next one instead. */
static void round_over(void *context, const char *reason) {
    struct muster_rendezvous *rendezvous = context;
    bool is_known = rendezvous->is_told;
    rendezvous->is_round_over = true;
    rendezvous->is_met = false;
    if (!is_known) {
        join(rendezvous);
    } else if (rendezvous->settings.round_over != NULL && !rendezvous->is_freed) {
        rendezvous->settings.round_over(rendezvous->settings.context, reason);
    }
}

static enum muster_error error_of(enum rendezvous_event_kind cause) {
    if (cause == RENDEZVOUS_EVENT_BROKEN) {
        return MUSTER_ERROR_PROTOCOL;
    }
    return cause == RENDEZVOUS_EVENT_CONNECTION_LOST ? MUSTER_ERROR_DISCONNECTED
                                                     : MUSTER_ERROR_TIMEOUT;
}

static void end_closed(
    struct muster_rendezvous *rendezvous, const struct rendezvous_effect *effect) {
    const char *reason = effect->told.reason;
    if (rendezvous->has_world && !rendezvous->is_round_over && *reason == '\0') {
        return; /* its round goes on, though none will follow */
    }
    if (effect->told.is_spare && *reason == '\0') {
        end(rendezvous, MUSTER_ERROR_GRACEFUL_EXIT, "the job ended well without this node");
    } else {
        end(rendezvous, MUSTER_ERROR_CLOSED, *reason != '\0' ? reason : "the rendezvous is closed");
    }
}

static void ended(
    void *context, const struct rendezvous_effect *effect, enum rendezvous_event_kind cause) {
    struct muster_rendezvous *rendezvous = context;
    if (effect->kind == RENDEZVOUS_EFFECT_CLOSED) {
        end_closed(rendezvous, effect);
    } else if (effect->kind == RENDEZVOUS_EFFECT_FAILED) {
        end(rendezvous, error_of(cause), effect->told.reason);
    } else if (rendezvous_member_state(rendezvous->node)->is_closed) {
        end(rendezvous, MUSTER_ERROR_CLOSED, "the rendezvous is closed");
    } else {
        end(rendezvous, error_of(cause), "the rendezvous could not be closed");
    }
}

static void hosting(void *context, int port) {
    struct muster_rendezvous *rendezvous = context;
    rendezvous->hosted_port = port;
}

static void left(void *context) {
    struct muster_rendezvous *rendezvous = context;
    rendezvous->has_left = true;
    rendezvous_object_wake(rendezvous);
}

/* For rendezvous.c. */

bool rendezvous_object_is_closed(const struct muster_rendezvous *rendezvous) {
    return rendezvous_member_state(rendezvous->node)->is_closed ||
           (rendezvous->is_over && (rendezvous->end.error == MUSTER_ERROR_CLOSED ||
                                       rendezvous->end.error == MUSTER_ERROR_GRACEFUL_EXIT));
}

bool rendezvous_object_has_seen(const struct muster_rendezvous *rendezvous) {
    const struct rendezvous_state *state = rendezvous_member_state(rendezvous->node);
    return rendezvous->has_world || rendezvous->is_round_over || state->count > 0 ||
           rendezvous_object_is_closed(rendezvous);
}

bool rendezvous_object_linger(struct muster_rendezvous *rendezvous) {
    double seconds = rendezvous->settings.linger_timeout;
    if (rendezvous->endpoint == NULL || rendezvous->hosted_port == 0 || seconds < 0) {
        return false;
    }
    rendezvous_endpoint_linger(rendezvous->endpoint,
        duration_from_seconds(seconds > 0 ? seconds : DEFAULT_LINGERING_SECONDS));
    return true;
}

static void take_alarm(void *context) {
    struct muster_rendezvous *rendezvous = context;
    rendezvous->is_alarmed = true;
    rendezvous_object_wake(rendezvous);
}

void rendezvous_object_set_alarm(struct muster_rendezvous *rendezvous, struct duration timeout) {
    rendezvous->is_alarmed = false;
    event_timer_set(rendezvous->alarm, instant_after(clock_now(), timeout));
}

void rendezvous_object_wake(struct muster_rendezvous *rendezvous) {
    rendezvous->is_woken = true;
    event_loop_stop(embedded_loop_inside(rendezvous->embedded));
}

/* Life. */

enum failure_code rendezvous_object_open(struct muster_rendezvous *rendezvous,
    const struct muster_rendezvous_backend *backend,
    const struct rendezvous_machine_settings *machine, struct failure *failure) {
    const struct rendezvous_member_observer observer = {
        .perform = perform,
        .joined = joined,
        .round_over = round_over,
        .ended = ended,
        .hosting = hosting,
        .left = left,
        .context = rendezvous,
    };
    struct event_loop *loop = embedded_loop_inside(rendezvous->embedded);
    const struct rendezvous_endpoint_settings settings = {
        .config = &rendezvous->config,
        .key = job_token_key(rendezvous->token),
        .log = &rendezvous->log,
        .met = met,
        .not_met = not_met,
        .context = rendezvous,
        .node = rendezvous->node = rendezvous_member_new(machine, &observer),
    };
    rendezvous->log = (struct log){LOG_LEVEL_DEBUG, write_log, rendezvous};
    rendezvous->alarm = event_timer_new(loop, take_alarm, rendezvous);
    rendezvous->soon = event_timer_new(loop, do_soon, rendezvous);
    if (backend != NULL) {
        return rendezvous_own_backend_new(
            loop, backend, rendezvous->node, &rendezvous->log, &rendezvous->own, failure);
    }
    return rendezvous_endpoint_new(loop, &settings, &rendezvous->endpoint, failure);
}

void rendezvous_object_destroy(struct muster_rendezvous *rendezvous) {
    rendezvous->is_freed = true; /* the program is told nothing any more */
    rendezvous_endpoint_free(rendezvous->endpoint);
    rendezvous_own_backend_free(rendezvous->own);
    rendezvous_member_free(rendezvous->node);
    event_timer_free(rendezvous->alarm);
    event_timer_free(rendezvous->soon);
    embedded_loop_free(rendezvous->embedded);
    job_token_free(rendezvous->token);
    launch_config_clear(&rendezvous->config);
    text_clear(&rendezvous->node_name);
    text_clear(&rendezvous->prefix);
    free(rendezvous->met_at);
    free(rendezvous->master_addr);
    free(rendezvous);
}
