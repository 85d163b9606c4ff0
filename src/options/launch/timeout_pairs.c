/* SPDX-License-Identifier: BSD-3-Clause */
#include "options/launch/timeout_pairs.h"

static bool is_conf(const struct launch_config *config, const char *key) {
    return text_list_variable(&config->rdzv_conf, key) != NULL;
}

static bool is_option(const struct option_result *options, const char *destination) {
    return option_result_value(options, destination)->source != OPTION_SOURCE_DEFAULT;
}

static bool is_longer(struct duration left, struct duration right) {
    return left.nanoseconds > right.nanoseconds;
}

/* Where all nodes are needed there is no last call. */
static bool check_last_call(struct option_result *options, const struct launch_config *config) {
    const struct rendezvous_settings *times = &config->dynamic.settings;
    if (config->minimum_nodes == config->maximum_nodes || !is_conf(config, "last_call_timeout") ||
        !is_conf(config, "join_timeout") ||
        !is_longer(times->last_call_timeout, times->join_timeout)) {
        return true;
    }
    option_result_reject(options, "rdzv_conf",
        "join_timeout=%g is shorter than last_call_timeout=%g: the nodes would give up before they "
        "have waited for more than %d of them; give a longer join_timeout or a shorter "
        "last_call_timeout",
        duration_seconds(times->join_timeout), duration_seconds(times->last_call_timeout),
        config->minimum_nodes);
    return false;
}

static bool check_keep_alive(struct option_result *options, const struct launch_config *config) {
    const struct rendezvous_settings *times = &config->dynamic.settings;
    struct duration silence = {
        times->keep_alive_interval.nanoseconds * times->keep_alive_max_attempt};
    bool is_given =
        is_conf(config, "keep_alive_interval") || is_conf(config, "keep_alive_max_attempt");
    if (!is_given || !is_conf(config, "join_timeout") || !is_longer(silence, times->join_timeout)) {
        return true;
    }
    option_result_reject(options, "rdzv_conf",
        "keep_alive_interval=%g times keep_alive_max_attempt=%d is longer than join_timeout=%g: "
        "when a node is lost, the others would give up before they know of it; give shorter signs "
        "of life or a longer join_timeout",
        duration_seconds(times->keep_alive_interval), times->keep_alive_max_attempt,
        duration_seconds(times->join_timeout));
    return false;
}

static bool check_host_timeout(struct option_result *options, const struct launch_config *config) {
    const struct rendezvous_settings *times = &config->dynamic.settings;
    bool is_by_option = is_option(options, "host_timeout");
    if (is_by_option && times->host_timeout.nanoseconds == 0) {
        option_result_reject(options, "host_timeout", "invalid value 0: give seconds, more than 0");
        return false;
    }
    if ((!is_by_option && !is_conf(config, "host_timeout")) || !is_conf(config, "join_timeout") ||
        !is_longer(times->host_timeout, times->join_timeout)) {
        return true;
    }
    option_result_reject(options, is_by_option ? "host_timeout" : "rdzv_conf",
        "host_timeout=%g is longer than join_timeout=%g, and no node looks for the store for "
        "longer "
        "than that; give a shorter host_timeout or a longer join_timeout",
        duration_seconds(times->host_timeout), duration_seconds(times->join_timeout));
    return false;
}

static bool check_settling(struct option_result *options, const struct launch_config *config) {
    struct duration join = config->dynamic.settings.join_timeout;
    if (!is_option(options, "settling_time") || !is_conf(config, "join_timeout") ||
        is_longer(join, config->settling_time)) {
        return true;
    }
    option_result_reject(options, "settling_time",
        "%g s are not shorter than join_timeout=%g (--rdzv-conf): nodes that do not settle would "
        "give up before this node joins them; give a shorter time or a longer join_timeout",
        duration_seconds(config->settling_time), duration_seconds(join));
    return false;
}

enum failure_code timeout_pairs_check(
    struct option_result *options, const struct launch_config *config) {
    bool is_right = config->rendezvous != LAUNCH_RENDEZVOUS_DYNAMIC ||
                    (check_last_call(options, config) && check_keep_alive(options, config) &&
                        check_host_timeout(options, config) && check_settling(options, config));
    return is_right ? FAILURE_NONE : FAILURE_INVALID;
}
