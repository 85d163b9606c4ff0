/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/rendezvous/agent_store_host.h"

#include <errno.h>
#include <stdlib.h>

#include "agent/rendezvous/agent_hosted_store.h"
#include "base/backoff.h"
#include "base/memory.h"
#include "core/rendezvous/endpoint_match.h"
#include "host/loop/random_seed.h"
#include "host/network/local_address.h"

/* A store on this machine has answered by then. */
#define TAKEN_SAID_MILLISECONDS 1500

struct agent_store_host {
    struct event_loop *loop;
    struct agent_store_host_settings settings;
    struct agent_hosted_store *store; /* NULL: not hosted here, yet or ever */
    struct endpoint_owner *owner;     /* NULL: no longer asked, or never */
    bool is_asked_for_others;         /* the owner, which is kept until it has answered */
    struct event_timer *asking;       /* again; NULL: no longer */
    struct backoff backoff;           /* as a connection is tried */
    bool is_own;                      /* the endpoint; the port may be another's */
    bool is_plain;                    /* that it is, without the resolver */
    bool is_taken;                    /* the port, and that was said */
    bool is_foreign_said;             /* that no store is there */
    bool is_anothers;                 /* the endpoint, as far as is known */
    bool is_reached_by_name;          /* this machine, by that of the endpoint */
    struct instant begun;
};

/* Hosting. */

static void say_hosting(const struct agent_store_host *host) {
    const struct agent_store_host_settings *settings = &host->settings;
    int port = agent_hosted_store_port(host->store);
    if (settings->config->dynamic.port == 0 && settings->config->maximum_nodes > 1) {
        log_warning(settings->log,
            "hosting the store of job '%s' on port %d, which was free; other nodes need to be "
            "told, as --rdzv-endpoint HOST:%d",
            settings->run_id, port, port);
    } else {
        log_info(settings->log, "hosting the store of job '%s' on port %d", settings->run_id, port);
    }
}

static enum failure_code open_port(struct agent_store_host *host, struct failure *failure) {
    const struct agent_store_host_settings *settings = &host->settings;
    const struct launch_dynamic *dynamic = &settings->config->dynamic;
    struct agent_hosted_store_settings store = {
        .config = settings->config,
        .run_id = settings->run_id,
        .log = settings->log,
        .key = settings->key,
        .operations = settings->operations,
        .gone = settings->gone,
        .record_written = settings->record_written,
        .wished = dynamic->settings.delegates ? settings->wished : NULL,
        .context = settings->context,
    };
    enum failure_code code = agent_hosted_store_open(
        host->loop, &store, dynamic->host, dynamic->port, &host->store, failure);
    if (code == FAILURE_NONE) {
        say_hosting(host);
    }
    return code;
}

/* Whoever has the port may be another node of this job, to be met there. For every other reason
 * nobody else may ever serve the store. */
static bool try_port(struct agent_store_host *host) {
    struct failure failure = {0};
    if (open_port(host, &failure) == FAILURE_NONE) {
        return true;
    }
    if (!host->is_taken) {
        bool is_anothers = failure.system_error == EADDRINUSE;
        log_record(host->settings.log, is_anothers ? LOG_LEVEL_INFO : LOG_LEVEL_WARNING, LOG_ORIGIN,
            "not hosting the job's store: %s", failure.message);
        host->is_taken = true;
    }
    return false;
}

/* Asking whether to. */

static void ask_later(struct agent_store_host *host) {
    event_timer_set(
        host->asking, instant_after(event_loop_now(host->loop), backoff_next(&host->backoff)));
}

/* Each of these machines takes the name for its own, and hosts a store there. */
static void warn_of_others(const struct agent_store_host *host, const char *others) {
    const struct launch_config *config = host->settings.config;
    log_warning(host->settings.log,
        "--rdzv-endpoint %s:%d is the name of several machines: it has this one's address, and %s; "
        "each of them hosts a store of its own, and none finds the others%s; give all nodes the "
        "name or the address of one machine (where this is a headless service of Kubernetes: of "
        "its first pod, as POD-0.%s)",
        config->dynamic.host, config->dynamic.port, others,
        config->minimum_nodes == 1 ? ", so this may be one job of one node on each machine" : "",
        config->dynamic.host);
}

static void free_owner(struct agent_store_host *host) {
    endpoint_owner_free(host->owner);
    host->owner = NULL;
}

static void others_answered(void *context, const char *others) {
    struct agent_store_host *host = context;
    host->is_asked_for_others = false;
    if (others[0] != '\0') {
        host->is_reached_by_name = false;
        warn_of_others(host, others);
    }
    if (host->asking == NULL) {
        free_owner(host);
    }
}

/* Nobody waits for the answer. */
static void ask_for_others(struct agent_store_host *host) {
    struct failure failure = {0};
    host->is_asked_for_others =
        endpoint_owner_ask_for_others(host->owner, &failure) == FAILURE_NONE;
    if (!host->is_asked_for_others) {
        log_warning(host->settings.log, "cannot find out whether the endpoint is one machine: %s",
            failure.message);
    }
}

void agent_store_host_write_hint(const struct agent_store_host *host, struct text *out) {
    const struct launch_dynamic *dynamic = &host->settings.config->dynamic;
    if (host->store != NULL) {
        return;
    }
    if (host->is_own && host->is_taken) {
        text_append_format(out,
            "; port %d is taken on this machine by a program that is no store: end it, or give all "
            "nodes another port with --rdzv-endpoint",
            dynamic->port);
    } else if (host->is_anothers) {
        text_append_format(out,
            "; %s is no address of any node that has come: where a node is reached there all the "
            "same, give it --rdzv-conf is_host=true, or --local-addr %s",
            dynamic->host, dynamic->host);
    }
}

static void warn_of_foreign_program(struct agent_store_host *host) {
    struct text line = {0};
    struct duration since = instant_until(host->begun, event_loop_now(host->loop));
    if (host->is_foreign_said || !host->is_taken ||
        since.nanoseconds < duration_from_milliseconds(TAKEN_SAID_MILLISECONDS).nanoseconds) {
        return;
    }
    host->settings.write_obstacle(host->settings.context, &line);
    if (line.length > 0) {
        host->is_foreign_said = true;
        agent_store_host_write_hint(host, &line);
        log_warning(host->settings.log, "%s", text_string(&line));
    }
    text_clear(&line);
}

static void owner_answered(void *context, bool is_own) {
    struct agent_store_host *host = context;
    if (is_own && !host->is_own) {
        ask_for_others(host);
    }
    host->is_own = is_own;
    host->is_anothers = !is_own;
    host->is_reached_by_name |= is_own && !host->is_plain;
    if (is_own && try_port(host)) {
        agent_store_host_stop_asking(host);
        host->settings.now_hosting(host->settings.context);
    } else {
        ask_later(host);
    }
}

static void ask(void *context) {
    struct agent_store_host *host = context;
    struct failure failure = {0};
    if (host->is_own) {
        warn_of_foreign_program(host);
        owner_answered(host, true);
    } else if (endpoint_owner_ask(host->owner, &failure) != FAILURE_NONE) {
        log_warning(
            host->settings.log, "cannot find out whose the endpoint is: %s", failure.message);
        ask_later(host);
    }
}

static enum failure_code begin_asking(struct agent_store_host *host, struct failure *failure) {
    const struct launch_config *config = host->settings.config;
    struct endpoint_owner_settings owner = {.host = config->dynamic.host,
        .answered = owner_answered,
        .shared = others_answered,
        .context = host};
    enum failure_code code = FAILURE_NONE;
    host->is_own = endpoint_owner_is_plain(config->dynamic.host, config->local_address);
    host->is_plain = host->is_own;
    host->is_reached_by_name =
        host->is_own && local_address_is_beyond_loopback(config->dynamic.host);
    if (host->is_own && try_port(host)) {
        return FAILURE_NONE;
    }
    backoff_init(&host->backoff, random_seed());
    host->asking = event_timer_new(host->loop, ask, host);
    code = endpoint_owner_new(host->loop, &owner, &host->owner, failure);
    if (code == FAILURE_NONE && host->is_own) {
        ask_later(host);
    } else if (code == FAILURE_NONE) {
        ask(host);
    }
    return code;
}

void agent_store_host_stop_asking(struct agent_store_host *host) {
    event_timer_free(host->asking);
    host->asking = NULL;
    if (!host->is_asked_for_others) {
        free_owner(host);
    }
}

/* A node that was told to host the store does not know whether the name is its own. Until it does,
 * it goes by its own name. */
static void told_host_answered(void *context, bool is_own) {
    struct agent_store_host *host = context;
    host->is_reached_by_name = is_own;
    if (is_own) {
        ask_for_others(host);
    }
    if (!host->is_asked_for_others) {
        free_owner(host);
    }
}

static void look_at_name(struct agent_store_host *host) {
    struct failure failure = {0};
    const struct launch_config *config = host->settings.config;
    struct endpoint_owner_settings owner = {.host = config->dynamic.host,
        .answered = told_host_answered,
        .shared = others_answered,
        .context = host};
    if (endpoint_owner_is_plain(config->dynamic.host, config->local_address)) {
        host->is_reached_by_name = local_address_is_beyond_loopback(config->dynamic.host);
    } else if (endpoint_owner_new(host->loop, &owner, &host->owner, &failure) != FAILURE_NONE ||
               endpoint_owner_ask(host->owner, &failure) != FAILURE_NONE) {
        log_warning(
            host->settings.log, "cannot find out whose the endpoint is: %s", failure.message);
    }
}

const char *agent_store_host_reached_name(const struct agent_store_host *host) {
    const char *name = host->settings.config->dynamic.host;
    bool is_number =
        name != NULL && address_choice_is_number(name) && !local_address_is_beyond_loopback(name);
    return host->store != NULL && host->is_reached_by_name && !host->is_asked_for_others &&
                   !is_number
               ? name
               : NULL;
}

const char *agent_store_host_reached_address(const struct agent_store_host *host) {
    return host->store != NULL ? agent_hosted_store_reached(host->store) : "";
}

/* Life. */

static enum failure_code host_if_told(struct agent_store_host *host, struct failure *failure) {
    const struct launch_dynamic *dynamic = &host->settings.config->dynamic;
    if (dynamic->store == LAUNCH_RECORD_FILE_STORE || dynamic->is_host == LAUNCH_IS_HOST_NO) {
        return FAILURE_NONE;
    }
    if (dynamic->is_host == LAUNCH_IS_HOST_UNSET) {
        return begin_asking(host, failure);
    }
    enum failure_code code = open_port(host, failure);
    if (code != FAILURE_NONE) {
        return failure_wrap(failure, "this node is told to host the job's store (is_host=true); "
                                     "give all nodes another port with --rdzv-endpoint, or "
                                     "this one is_host=false if the store is there");
    }
    look_at_name(host);
    return FAILURE_NONE;
}

enum failure_code agent_store_host_new(struct event_loop *loop,
    const struct agent_store_host_settings *settings, struct agent_store_host **out_host,
    struct failure *failure) {
    struct agent_store_host *host = memory_allocate(sizeof *host);
    host->loop = loop;
    host->settings = *settings;
    host->begun = event_loop_now(loop);
    enum failure_code code = host_if_told(host, failure);
    if (code != FAILURE_NONE) {
        agent_store_host_free(host);
        return code;
    }
    *out_host = host;
    return FAILURE_NONE;
}

void agent_store_host_free(struct agent_store_host *host) {
    if (host == NULL) {
        return;
    }
    agent_store_host_stop_asking(host);
    free_owner(host);
    agent_hosted_store_free(host->store);
    free(host);
}

bool agent_store_host_is_hosting(const struct agent_store_host *host) {
    return host->store != NULL;
}

const char *agent_store_host_address(const struct agent_store_host *host) {
    return host->store != NULL ? "127.0.0.1" : host->settings.config->dynamic.host;
}

int agent_store_host_port(const struct agent_store_host *host) {
    return host->store != NULL ? agent_hosted_store_port(host->store)
                               : host->settings.config->dynamic.port;
}

void agent_store_host_tell(struct agent_store_host *host, const struct rendezvous_effect *effect) {
    if (host != NULL && host->store != NULL) {
        agent_hosted_store_tell(host->store, effect);
    }
}

void agent_store_host_linger(struct agent_store_host *host, size_t own, struct duration patience,
    void (*done)(void *context), void *context) {
    if (host->store != NULL) {
        agent_hosted_store_linger(host->store, own, patience, done, context);
    } else {
        done(context);
    }
}
