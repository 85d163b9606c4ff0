/* SPDX-License-Identifier: BSD-3-Clause */
#include "options/rendezvous_options.h"

#include <stdlib.h>

#include "base/memory.h"
#include "options/dynamic_options.h"
#include "options/endpoint.h"
#include "options/option_values.h"
#include "options/rendezvous_conf.h"

#define DEFAULT_MASTER_PORT 29500
#define DEFAULT_STORE_TIMEOUT_SECONDS 900
#define HIGHEST_PORT 65535

static int64_t integer_of(const struct option_result *options, const char *destination) {
    return option_result_value(options, destination)->integer;
}

static bool is_given(const struct option_result *options, const char *destination) {
    return option_result_value(options, destination)->source != OPTION_SOURCE_DEFAULT;
}

static enum failure_code apply_nodes(struct option_result *options, struct launch_config *config) {
    struct text reason = {0};
    enum failure_code code = option_parse_node_range(option_result_text(options, "nnodes"),
        &config->minimum_nodes, &config->maximum_nodes, &reason);
    return option_result_settle(options, "nnodes", code, &reason);
}

static enum failure_code check_port(struct option_result *options) {
    int64_t port = integer_of(options, "master_port");
    if (port < 0 || port > HIGHEST_PORT) {
        option_result_reject(options, "master_port",
            "invalid value %lld: ports go from 0 (any free one) to %d", (long long)port,
            HIGHEST_PORT);
        return FAILURE_INVALID;
    }
    return FAILURE_NONE;
}

static bool has_endpoint(const struct option_result *options) {
    return *option_result_text(options, "rdzv_endpoint") != '\0';
}

/* One node that was told no address: alone, as with --standalone. */
static bool is_alone_by_default(
    const struct option_result *options, const struct launch_config *config) {
    return text_equals(option_result_text(options, "rdzv_backend"), "static") &&
           !has_endpoint(options) && !option_result_value(options, "master_port")->is_set &&
           config->maximum_nodes == 1;
}

static void warn_of_unused(
    const struct option_result *options, struct launch_config *config, bool is_standalone) {
    const char *backend = config->rdzv_backend;
    if (!is_standalone && is_given(options, "master_addr") && !has_endpoint(options)) {
        text_list_add_taken(&config->warnings,
            text_format("--master-addr is not used: it is for --rdzv-backend static only, and this "
                        "is %s",
                backend));
    }
    if (integer_of(options, "node_rank") != 0) {
        text_list_add_taken(&config->warnings,
            text_format("--node-rank is not used: it is for --rdzv-backend static only, and this "
                        "is %s",
                backend));
    }
}

/* --standalone, said or meant. */
static enum failure_code apply_alone(struct option_result *options, struct launch_config *config) {
    if (config->maximum_nodes > 1) {
        option_result_reject(options, "standalone",
            "runs on one node, but --nnodes asks for %d; leave one of the two out",
            config->maximum_nodes);
        return FAILURE_INVALID;
    }
    config->rendezvous = LAUNCH_RENDEZVOUS_SINGLE;
    warn_of_unused(options, config, true);
    return FAILURE_NONE;
}

static enum failure_code take_run_id(struct option_result *options, struct launch_config *config) {
    if (*option_result_text(options, "rdzv_id") == '\0') {
        option_result_reject(options, "rdzv_id", "is empty; give the job a name or leave it out");
        return FAILURE_INVALID;
    }
    config->run_id = memory_duplicate_string(option_result_text(options, "rdzv_id"));
    return FAILURE_NONE;
}

/* c10d, etcd, etcd-v2 with one node: it needs no agreement, and nobody else is there to be met. */
static enum failure_code apply_one_node(
    struct option_result *options, struct launch_config *config) {
    if (!rendezvous_conf_wants_file(&config->rdzv_conf)) {
        struct endpoint endpoint = {0};
        struct text reason = {0};
        enum failure_code code =
            endpoint_parse(option_result_text(options, "rdzv_endpoint"), &endpoint, &reason);
        endpoint_clear(&endpoint);
        if (code != FAILURE_NONE) {
            return option_result_settle(options, "rdzv_endpoint", code, &reason);
        }
    }
    config->rendezvous = LAUNCH_RENDEZVOUS_SINGLE;
    warn_of_unused(options, config, false);
    return take_run_id(options, config);
}

static enum failure_code apply_several_nodes(
    struct option_result *options, struct launch_config *config) {
    if (!text_equals(config->rdzv_backend, "c10d")) {
        option_result_reject(options, "rdzv_backend",
            "%s with several nodes (--nnodes %s) is not in this version of Muster; use "
            "--rdzv-backend c10d, whose store one of the nodes hosts itself",
            config->rdzv_backend, option_result_text(options, "nnodes"));
        return FAILURE_UNSUPPORTED;
    }
    config->rendezvous = LAUNCH_RENDEZVOUS_DYNAMIC;
    warn_of_unused(options, config, false);
    enum failure_code code = take_run_id(options, config);
    return code == FAILURE_NONE ? dynamic_options_apply(options, config) : code;
}

/* The master from --rdzv-endpoint. */
static enum failure_code apply_endpoint(
    struct option_result *options, struct launch_config *config) {
    struct endpoint endpoint = {0};
    struct text reason = {0};
    enum failure_code code =
        endpoint_parse(option_result_text(options, "rdzv_endpoint"), &endpoint, &reason);
    if (code == FAILURE_NONE && endpoint.port == ENDPOINT_NO_PORT) {
        code = option_refuse_value(&reason, option_result_text(options, "rdzv_endpoint"),
            "the static rendezvous needs a port too; write HOST:PORT, an IPv6 address in brackets, "
            "as in [::1]:29500");
        endpoint_clear(&endpoint);
    }
    if (code == FAILURE_NONE) {
        config->master_host = endpoint.host;
        config->master_port = endpoint.port;
    }
    return option_result_settle(options, "rdzv_endpoint", code, &reason);
}

/* The master from --master-addr and --master-port. */
static enum failure_code apply_master(struct option_result *options, struct launch_config *config) {
    const struct option_value *port = option_result_value(options, "master_port");
    struct text reason = {0};
    config->master_port = port->is_set ? (int)port->integer : DEFAULT_MASTER_PORT;
    enum failure_code code = endpoint_parse_host(
        option_result_text(options, "master_addr"), &config->master_host, &reason);
    return option_result_settle(options, "master_addr", code, &reason);
}

static enum failure_code apply_node_rank(
    struct option_result *options, struct launch_config *config) {
    int64_t rank = integer_of(options, "node_rank");
    if (rank < 0 || rank >= config->maximum_nodes) {
        option_result_reject(options, "node_rank",
            "invalid value %lld: with %d node%s (--nnodes) ranks go from 0 to %d", (long long)rank,
            config->maximum_nodes, config->maximum_nodes == 1 ? "" : "s",
            config->maximum_nodes - 1);
        return FAILURE_INVALID;
    }
    config->node_rank = (int)rank;
    return FAILURE_NONE;
}

/* As torchrun, which says nothing of it. */
static void warn_of_range(const struct option_result *options, struct launch_config *config) {
    if (config->minimum_nodes != config->maximum_nodes) {
        text_list_add_taken(&config->warnings,
            text_format("--nnodes %s: with --rdzv-backend static the job waits for %d nodes and "
                        "keeps them; for nodes that come and go use --rdzv-backend c10d",
                option_result_text(options, "nnodes"), config->maximum_nodes));
    }
}

static enum failure_code apply_static(struct option_result *options, struct launch_config *config) {
    enum failure_code code =
        has_endpoint(options) ? apply_endpoint(options, config) : apply_master(options, config);
    if (code == FAILURE_NONE) {
        code = apply_node_rank(options, config);
    }
    if (code != FAILURE_NONE) {
        return code;
    }
    if (config->master_port == 0 && config->maximum_nodes > 1) {
        option_result_reject(options, has_endpoint(options) ? "rdzv_endpoint" : "master_port",
            "port 0 (any free one) cannot be found by the other nodes; give a number");
        return FAILURE_INVALID;
    }
    config->rendezvous = LAUNCH_RENDEZVOUS_STATIC;
    warn_of_range(options, config);
    rendezvous_conf_warn_of_unknown(&config->rdzv_conf, config->rdzv_backend, &config->warnings);
    config->run_id = memory_duplicate_string(option_result_text(options, "rdzv_id"));
    return FAILURE_NONE;
}

/* The backend's name, after torchrun's rewriting. */
static enum failure_code apply_backend(
    struct option_result *options, struct launch_config *config, bool is_alone) {
    static const char *const known[] = {"static", "c10d", "etcd", "etcd-v2"};
    const char *backend = is_alone ? "c10d" : option_result_text(options, "rdzv_backend");
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (text_equals(backend, known[i])) {
            config->rdzv_backend = memory_duplicate_string(backend);
            return FAILURE_NONE;
        }
    }
    struct text reason = {0};
    enum failure_code code =
        option_refuse_value(&reason, backend, "the backends are static, c10d, etcd and etcd-v2");
    return option_result_settle(options, "rdzv_backend", code, &reason);
}

static enum failure_code apply_settings(
    struct option_result *options, struct launch_config *config) {
    struct text reason = {0};
    enum failure_code code = rendezvous_conf_parse(
        option_result_text(options, "rdzv_conf"), &config->rdzv_conf, &reason);
    if (code == FAILURE_NONE) {
        code = rendezvous_conf_check(&config->rdzv_conf, config->rdzv_backend, &reason);
    }
    if (code != FAILURE_NONE) {
        return option_result_settle(options, "rdzv_conf", code, &reason);
    }
    int64_t seconds = DEFAULT_STORE_TIMEOUT_SECONDS;
    const char *timeout = text_list_variable(&config->rdzv_conf, "timeout");
    if (timeout != NULL && text_equals(config->rdzv_backend, "static")) {
        code = text_parse_integer(timeout, &seconds); /* checked above */
    }
    config->store_timeout = duration_from_milliseconds(seconds * 1000);
    return code;
}

static enum failure_code apply_meeting(
    struct option_result *options, struct launch_config *config, bool is_alone) {
    if (is_alone) {
        return apply_alone(options, config);
    }
    if (text_equals(config->rdzv_backend, "static")) {
        return apply_static(options, config);
    }
    return config->maximum_nodes == 1 ? apply_one_node(options, config)
                                      : apply_several_nodes(options, config);
}

enum failure_code rendezvous_options_apply(
    struct option_result *options, struct launch_config *config) {
    enum failure_code code = apply_nodes(options, config);
    if (code == FAILURE_NONE) {
        code = check_port(options);
    }
    bool is_alone = code == FAILURE_NONE && (option_result_value(options, "standalone")->flag ||
                                                is_alone_by_default(options, config));
    if (code == FAILURE_NONE) {
        code = apply_backend(options, config, is_alone);
    }
    if (code == FAILURE_NONE) {
        code = apply_settings(options, config);
    }
    if (code == FAILURE_NONE) {
        code = apply_meeting(options, config, is_alone);
    }
    return code == FAILURE_NONE ? dynamic_options_apply_policies(options, config) : code;
}
