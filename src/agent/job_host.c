/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/job_host.h"

#include <stdlib.h>
#include <unistd.h>

#include "agent/rendezvous/agent_node_settings.h"
#include "base/memory.h"
#include "core/rendezvous/endpoint_match.h"
#include "core/rendezvous/rendezvous_key.h"
#include "core/round/round_key.h"
#include "host/log/log_sink.h"
#include "host/register/register.h"
#include "host/telling/job_asking.h"

struct job_host {
    const struct launch_config *config;
    struct event_loop *loop;
    struct log_sink *sink;
    struct agent_proof *proof; /* NULL: nobody proves anything */
    struct text folder;
    struct duration timeout;
    struct host_place place; /* of the job's store */
    /* Of the question, or of the look into the register, that is under way: */
    bool is_done;
    struct failure failure;
    struct bytes *answer;
};

/* Where. */

static void take_look(void *context, const struct register_event *event) {
    struct job_host *host = context;
    if (event->kind == REGISTER_FAILED) {
        host->failure = *event->failure;
    } else if (event->kind != REGISTER_READ) {
        return;
    } else if (event->entry == NULL ||
               host_place_parse(event->entry->addresses, &host->place) != FAILURE_NONE) {
        (void)failure_set(&host->failure, FAILURE_MISSING,
            "the register knows of no host of job '%s'", host->config->run_id);
    }
    host->is_done = true;
    event_loop_stop(host->loop);
}

static void run(struct job_host *host) {
    while (!host->is_done) {
        event_loop_run(host->loop);
    }
}

/* The host may be another one each time. */
static enum failure_code look_into_register(struct job_host *host, struct failure *failure) {
    const struct launch_config *config = host->config;
    struct job_register *reg;
    const struct register_settings settings = {
        .endpoint = config->dynamic.register_endpoint,
        .run_id = config->run_id,
        .node_name = "muster",
        .conf = &config->rdzv_conf,
        .observer = {take_look, host},
    };
    host_place_clear(&host->place);
    host->is_done = false;
    host->failure = (struct failure){0};
    enum failure_code code = register_open(host->loop,
        register_engine_named(config->dynamic.register_engine), &settings, &reg, failure);
    if (code != FAILURE_NONE) {
        return code;
    }
    (void)register_read(reg, instant_after(event_loop_now(host->loop), host->timeout));
    run(host);
    register_free(reg);
    *failure = host->failure;
    return failure->code;
}

static enum failure_code find_place(struct job_host *host, struct failure *failure) {
    const struct launch_config *config = host->config;
    if (config->rendezvous == LAUNCH_RENDEZVOUS_DYNAMIC &&
        config->dynamic.register_engine != NULL) {
        return look_into_register(host, failure);
    }
    bool is_fixed = config->rendezvous == LAUNCH_RENDEZVOUS_STATIC;
    host_place_clear(&host->place);
    host->place.names =
        memory_duplicate_string(is_fixed ? config->master_host : config->dynamic.host);
    host->place.port = is_fixed ? config->master_port : config->dynamic.port;
    return host->place.names != NULL ? FAILURE_NONE
                                     : failure_set(failure, FAILURE_UNSUPPORTED,
                                           "a store in a file has no host that could be asked");
}

/* Asking. */

static void answered(void *context, const struct failure *failure, struct slice answer) {
    struct job_host *host = context;
    if (failure != NULL) {
        host->failure = *failure;
    } else if (bytes_append(host->answer, answer.data, answer.length) != FAILURE_NONE) {
        (void)failure_set(&host->failure, FAILURE_LIMIT, "the answer is too long");
    }
    host->is_done = true;
    event_loop_stop(host->loop);
}

enum failure_code job_host_ask(struct job_host *host, enum job_question_kind kind, int64_t after,
    struct bytes *answer, struct failure *failure) {
    enum failure_code code = find_place(host, failure);
    if (code != FAILURE_NONE) {
        return code;
    }
    const struct job_asking_settings settings = {
        .host = host->place.names,
        .port = host->place.port,
        .key = agent_proof_key(host->proof),
        .folder = text_string(&host->folder),
        .kind = kind,
        .after = after,
        .timeout = host->timeout,
        .done = answered,
        .context = host,
    };
    host->is_done = false;
    host->failure = (struct failure){0};
    host->answer = answer;
    struct job_asking *asking = job_asking_new(host->loop, &settings);
    run(host);
    job_asking_free(asking);
    *failure = host->failure;
    return failure->code;
}

/* Life. */

static enum failure_code open_host(struct job_host *host, struct failure *failure) {
    const struct launch_config *config = host->config;
    enum failure_code code = event_loop_new(&host->loop, failure);
    if (code != FAILURE_NONE) {
        return code;
    }
    if (config->rendezvous == LAUNCH_RENDEZVOUS_STATIC) {
        round_key_write_telling(config->run_id, &host->folder);
    } else {
        rendezvous_key_write_telling(config->run_id, &host->folder);
    }
    const struct agent_proof_settings proof = {config, config->run_id, host->loop,
        log_sink_log(host->sink), NULL,
        duration_from_seconds(AGENT_PROOF_MUNGE_PERSISTENCE_SECONDS)};
    return agent_proof_open(&proof, &host->proof, failure);
}

enum failure_code job_host_open(const struct launch_config *config, struct duration timeout,
    struct job_host **out_host, struct failure *failure) {
    struct job_host *host = memory_allocate(sizeof *host);
    host->config = config;
    host->timeout = timeout;
    signal_watch_ignore_write_signals();
    host->sink = log_sink_new("ERROR", STDERR_FILENO);
    enum failure_code code = open_host(host, failure);
    if (code != FAILURE_NONE) {
        job_host_free(host);
        return code;
    }
    *out_host = host;
    return FAILURE_NONE;
}

void job_host_free(struct job_host *host) {
    if (host == NULL) {
        return;
    }
    host_place_clear(&host->place);
    agent_proof_free(host->proof);
    (void)event_loop_free(host->loop);
    log_sink_free(host->sink);
    text_clear(&host->folder);
    free(host);
}
