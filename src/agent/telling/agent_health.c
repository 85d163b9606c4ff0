/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/telling/agent_health.h"

#include <stdlib.h>

#include "base/memory.h"
#include "host/loop/blocking_pool.h"
#include "host/network/health_endpoint.h"
#include "host/network/network_address.h"
#include "wire/telling/health_json.h"
#include "wire/telling/http_host.h"
#include "wire/telling/metrics_text.h"

struct agent_health {
    struct agent_health_settings settings;
    struct event_loop *loop;
    struct health_endpoint *endpoint;
    struct text_list names;     /* of this machine */
    struct blocking_pool *pool; /* ask the resolver for another; or NULL */
};

/* Names. */

static void add_names(struct agent_health *health) {
    const struct launch_config *config = health->settings.config;
    const char *const names[] = {health->settings.preparation->host_name,
        health->settings.preparation->master_address, config->local_address, config->health_address,
        config->master_host, config->dynamic.host};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (names[i] != NULL) {
            text_list_add(&health->names, names[i]);
        }
    }
    if (config->health_hosts != NULL) {
        http_host_add_names(config->health_hosts, &health->names);
    }
}

static void find_qualified_name(void *subject) {
    char **name = subject;
    (void)!local_address_qualified_name(name, NULL);
}

static void free_qualified_name(void *subject) {
    char **name = subject;
    free(*name);
    free(name);
}

static void found_qualified_name(void *context, void *subject) {
    struct agent_health *health = context;
    char **name = subject;
    if (*name != NULL) {
        text_list_add(&health->names, *name);
    }
}

/* A name server may take its time. Probes mostly ask by address, and need not wait for it. */
static void ask_for_qualified_name(struct agent_health *health) {
    struct blocking_call *call;
    if (blocking_pool_new(health->loop, &health->pool, NULL) == FAILURE_NONE) {
        char **name = memory_allocate(sizeof *name);
        const struct blocking_task task = {find_qualified_name, free_qualified_name, name};
        const struct blocking_answer answer = {found_qualified_name, health};
        (void)!blocking_pool_send(health->pool, &task, &answer, &call, NULL);
    }
}

/* Answers. */

static void answer_health(const struct agent_health *health, struct health_answer *answer) {
    const struct agent_machine *machine = health->settings.machine;
    struct health_facts facts = {
        .phase = machine->phase,
        .stop_reason = machine->stop_reason,
        .has_started = machine->ticket > 1,
        .now = event_loop_wall_time(health->loop),
        .last_progress = health->settings.last_progress(health->settings.context),
        .timeout = health->settings.config->health_timeout,
    };
    bool has_workers = machine->phase >= AGENT_STARTING && machine->phase <= AGENT_STOPPING;
    struct health_report report = {
        .verdict = health_judge(&facts),
        .run_id = health->settings.preparation->run_id,
        .restarts = agent_machine_attempt(machine),
        .max_restarts = health->settings.config->max_restarts,
        .workers = health->settings.preparation->worker_count,
        .running_workers = has_workers ? (int)machine->workers.running_count : 0,
    };
    answer->status = health_http_status(&report.verdict);
    answer->content_type = "application/json";
    health_json_write(&report, &answer->body);
}

static void answer(void *context, const char *path, struct health_answer *answer) {
    struct agent_health *health = context;
    if (text_equals(path, "/health")) {
        answer_health(health, answer);
    } else if (text_equals(path, "/metrics")) {
        answer->status = 200;
        answer->content_type = METRICS_TEXT_CONTENT_TYPE;
        health->settings.write_metrics(health->settings.context, &answer->body);
    } else {
        answer->status = 404;
        text_append(&answer->body, "there are /health and /metrics\n");
    }
}

struct agent_health *agent_health_new(
    struct event_loop *loop, const struct agent_health_settings *settings) {
    const struct launch_config *config = settings->config;
    struct failure failure = {0};
    if (!config->serves_health) {
        return NULL;
    }
    struct agent_health *health = memory_allocate(sizeof *health);
    *health = (struct agent_health){.settings = *settings, .loop = loop};
    add_names(health);
    struct health_endpoint_settings endpoint = {
        .address = config->health_address,
        .port = config->health_port,
        .names = &health->names,
        .answer = answer,
        .context = health,
    };
    if (health_endpoint_new(loop, &endpoint, &health->endpoint, &failure) != FAILURE_NONE) {
        log_warning(settings->log, "TORCHELASTIC_HEALTH_CHECK_PORT%s: no health is served: %s",
            config->health_address != NULL ? ", MUSTER_HEALTH_CHECK_ADDRESS" : "", failure.message);
        agent_health_free(health);
        return NULL;
    }
    ask_for_qualified_name(health);
    log_info(settings->log, "health: serving /health and /metrics on port %d",
        health_endpoint_port(health->endpoint));
    return health;
}

void agent_health_free(struct agent_health *health) {
    if (health != NULL) {
        health_endpoint_free(health->endpoint);
        blocking_pool_free(health->pool);
        text_list_clear(&health->names);
        free(health);
    }
}
