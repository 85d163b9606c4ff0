/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/rendezvous/agent_node_settings.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/random.h"
#include "core/standby/standby_plan.h"
#include "host/loop/clock.h"
#include "host/machine/machine_topology.h"
#include "host/network/local_address.h"

static enum membership_kind kind_of(const struct launch_config *config) {
    if (config->rendezvous == LAUNCH_RENDEZVOUS_DYNAMIC) {
        return MEMBERSHIP_CHANGING;
    }
    return config->maximum_nodes > 1 ? MEMBERSHIP_FIXED : MEMBERSHIP_ALONE;
}

static enum failure_code find_address(const struct launch_config *config, char **out_address,
    struct text *leads_to, struct failure *failure) {
    if (config->local_address != NULL) {
        *out_address = memory_duplicate_string(config->local_address);
        return FAILURE_NONE;
    }
    return local_address_for_many_nodes(out_address, leads_to, failure);
}

static char *name_store(const struct launch_config *config, enum membership_kind kind) {
    if (kind == MEMBERSHIP_FIXED) {
        return text_format("%s:%d", config->master_host, config->master_port);
    }
    if (kind == MEMBERSHIP_CHANGING && config->dynamic.register_engine != NULL) {
        return text_format(
            "%s %s", config->dynamic.register_engine, config->dynamic.register_endpoint);
    }
    if (kind == MEMBERSHIP_CHANGING && config->dynamic.file == NULL) {
        return text_format("%s:%d", config->dynamic.host, config->dynamic.port);
    }
    return memory_duplicate_string(config->dynamic.file);
}

static void name_node(
    struct node_settings *node, const char *address, const struct launch_config *config) {
    struct rendezvous_machine_settings *settings = &node->rendezvous;
    struct random random;
    random_init(&random, random_seed());
    settings->seed = random_next(&random); /* the machine's next name must not be this one again */
    node_identity_init(&settings->identity, address, getpid(),
        node_identity_muster_local_id((uint32_t)random_next(&random)));
    if (config->dynamic.register_engine != NULL) {
        settings->identity.process = (struct node_process){random_seed(), random_seed()};
    }
    node->succession = (struct succession_settings){
        .identity = settings->identity,
        .silence_timeout = config->dynamic.settings.silence_timeout,
        .fence_timeout = config->dynamic.settings.fence_timeout,
    };
}

/* Its address need not be one that other nodes can use, so no name server is asked. */
static enum failure_code write_claim(
    const struct launch_config *config, char **out_claim, struct failure *failure) {
    struct random random;
    struct node_identity identity;
    struct text claim = {0};
    char *name = NULL;
    if (config->local_address == NULL) {
        enum failure_code code = local_address_host_name(&name, failure);
        if (code != FAILURE_NONE) {
            return code;
        }
    }
    random_init(&random, random_seed());
    node_identity_init(&identity, name != NULL ? name : config->local_address, getpid(),
        node_identity_muster_local_id((uint32_t)random_next(&random)));
    identity.process = (struct node_process){random_seed(), random_seed()};
    node_identity_write(&identity, &claim);
    *out_claim = text_take(&claim);
    free(name);
    return FAILURE_NONE;
}

/* What other nodes are to know this one by. Leaves alone what a node of its kind has not. */
static enum failure_code find_names(const struct launch_config *config, enum membership_kind kind,
    char **out_address, struct text *leads_to, char **out_claim, struct failure *failure) {
    if (kind == MEMBERSHIP_CHANGING) {
        return find_address(config, out_address, leads_to, failure);
    }
    return kind == MEMBERSHIP_FIXED ? write_claim(config, out_claim, failure) : FAILURE_NONE;
}

static struct agent_settings agent_settings_of(const struct launch_config *config,
    const struct agent_preparation *preparation, enum membership_kind kind) {
    return (struct agent_settings){
        .worker_count = preparation->worker_count,
        .max_restarts = config->max_restarts,
        .shutdown_timeout = config->shutdown_timeout,
        .has_peers = kind != MEMBERSHIP_ALONE,
        .looks_before_killing = config->evidence != LAUNCH_EVIDENCE_OFF,
        .checks_node = config->node_check != NULL,
        .restart_window = config->restart_window,
        .no_progress_restarts = config->no_progress_restarts,
        .restart_backoff = config->restart_backoff,
        .may_lose_peers = kind == MEMBERSHIP_CHANGING,
    };
}

static struct standby_settings choose_standby(const struct launch_config *config,
    const struct agent_preparation *preparation, struct agent_node_settings *settings) {
    struct cpu_set_bits cpus = {0};
    (void)!machine_topology_allowed_cpus(&cpus, NULL);
    settings->cpu_count = (int)cpu_set_count(&cpus);
    uint64_t assumed =
        config->has_standby_parent ? STANDBY_ASSUMED_FORKED_MIB : STANDBY_ASSUMED_MIB;
    settings->standby = standby_choose(config, preparation->worker_count, settings->cpu_count);
    return (struct standby_settings){
        .is_wanted = settings->standby == STANDBY_CHOICE_WANTED,
        .is_auto = config->standby == LAUNCH_STANDBY_AUTO,
        .worker_count = preparation->worker_count,
        .assumed = assumed << 20,
        .after = config->standby_after,
    };
}

static bool are_nodes_uniform(const struct text_list *environment) {
    const char *word = text_list_variable(environment, "TORCH_ELASTIC_WORKER_IDENTICAL");
    return word != NULL && text_equals(word, "1");
}

enum failure_code agent_node_settings_make(const struct launch_config *config,
    const struct agent_preparation *preparation, const struct text_list *environment,
    struct agent_node_settings *out_settings, struct failure *failure) {
    enum membership_kind kind = kind_of(config);
    const struct rendezvous_settings *rendezvous = &config->dynamic.settings;
    bool is_uniform = are_nodes_uniform(environment);
    char *address = NULL;
    char *claim = NULL;
    struct text leads_to = {0};
    enum failure_code code = find_names(config, kind, &address, &leads_to, &claim, failure);
    if (code != FAILURE_NONE) {
        text_clear(&leads_to);
        return code;
    }
    struct agent_node_settings settings = {
        .address = address,
        .address_leads_to = text_take(&leads_to),
        .where = name_store(config, kind),
        .claim = claim,
    };
    settings.node = (struct node_settings){
        .agent = agent_settings_of(config, preparation, kind),
        .membership =
            {
                .kind = kind,
                .run_id = preparation->run_id,
                .role = config->role,
                .local_world_size = preparation->worker_count,
                .address = settings.address,
                .where = settings.where,
                .master_address = preparation->master_address,
                .master_port = config->master_port,
                .node_rank = config->node_rank,
                .node_count = config->maximum_nodes,
                .settling_time = config->settling_time,
                .is_hasty = config->dynamic.register_engine != NULL && !config->has_settling_time,
                .has_succession = config->dynamic.register_engine != NULL,
                .ignores_losses = !rendezvous_settings_heed_losses(rendezvous),
            },
        .rendezvous = {.rendezvous = *rendezvous,
            .has_succession = config->dynamic.register_engine != NULL},
        .round =
            {
                .role = config->role,
                .local_world_size = preparation->worker_count,
                .is_uniform = is_uniform,
                .has_succession = config->dynamic.register_engine != NULL,
                .timeout =
                    kind == MEMBERSHIP_CHANGING ? rendezvous->join_timeout : config->store_timeout,
                .where = settings.where,
                .claim = settings.claim,
                .exit_barrier_timeout = config->exit_barrier_timeout,
            },
    };
    settings.node.standby = choose_standby(config, preparation, &settings);
    if (kind == MEMBERSHIP_CHANGING) {
        name_node(&settings.node, settings.address, config);
        settings.node.rendezvous.warming_patience =
            settings.node.standby.is_wanted ? config->standby_timeout : (struct duration){0};
    }
    *out_settings = settings;
    return FAILURE_NONE;
}

void agent_node_settings_clear(struct agent_node_settings *settings) {
    free(settings->address);
    free(settings->address_leads_to);
    free(settings->where);
    free(settings->claim);
    *settings = (struct agent_node_settings){0};
}
