/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/launch/launch_config.h"

#include <stdlib.h>
#include <string.h>

#define SECOND INT64_C(1000000000)
/* Of all nodes that delegate. */
#define BEATS_A_SECOND 32

/* The part of the time until a node is taken for lost in which workers are ended; at most … */
#define ENDING_PART 20
#define ENDING_MAXIMUM SECOND

void rendezvous_settings_init(struct rendezvous_settings *settings) {
    *settings = (struct rendezvous_settings){
        .minimum_nodes = 1,
        .maximum_nodes = 1,
        .join_timeout = {600 * SECOND},
        .last_call_timeout = {30 * SECOND},
        .close_timeout = {30 * SECOND},
        .heartbeat_timeout = {5 * SECOND},
        .keep_alive_interval = {5 * SECOND},
        .keep_alive_max_attempt = 3,
        .silence_timeout = {3 * SECOND},
        .calm_after = {600 * SECOND},
        .host_timeout = {30 * SECOND},
        .fence_timeout = {5 * SECOND},
        .exit_barrier_timeout = {300 * SECOND},
        .on_node_loss = RENDEZVOUS_ON_NODE_LOSS_RESTART,
        .scale_up = RENDEZVOUS_SCALE_UP_ALLOWED,
        .scale_up_interval = {0},
    };
}

bool rendezvous_settings_heed_losses(const struct rendezvous_settings *settings) {
    return settings->on_node_loss != RENDEZVOUS_ON_NODE_LOSS_TORCHRUN;
}

struct duration rendezvous_settings_beat(const struct rendezvous_settings *settings) {
    int64_t interval = settings->keep_alive_interval.nanoseconds;
    int64_t shared = settings->maximum_nodes * (SECOND / BEATS_A_SECOND);
    return (struct duration){settings->delegates && shared > interval ? shared : interval};
}

struct duration rendezvous_settings_standstill(const struct rendezvous_settings *settings) {
    int64_t interval = settings->keep_alive_interval.nanoseconds;
    int64_t until_lost = interval * settings->keep_alive_max_attempt;
    int64_t ending = until_lost / ENDING_PART;
    int64_t left = until_lost - interval - (ending < ENDING_MAXIMUM ? ending : ENDING_MAXIMUM);
    return (struct duration){left > 0 ? left : 0};
}

/* Secret setting. */

#define STARS "***"

static char lower(char letter) {
    return letter >= 'A' && letter <= 'Z' ? (char)(letter - 'A' + 'a') : letter;
}

static bool is_word_at(const char *text, size_t length, const char *word) {
    size_t i = 0;
    while (word[i] != '\0' && i < length && lower(text[i]) == word[i]) {
        i++;
    }
    return word[i] == '\0';
}

static bool has_word(const char *text, size_t length, const char *word) {
    for (size_t i = 0; i < length; i++) {
        if (is_word_at(text + i, length - i, word)) {
            return true;
        }
    }
    return false;
}

static bool ends_in(const char *text, size_t length, const char *word) {
    size_t size = strlen(word);
    return length >= size && is_word_at(text + length - size, size, word);
}

bool secret_setting_is_one(const char *setting) {
    static const char *const words[] = {"password", "passwd", "secret", "token"};
    size_t length = strcspn(setting, "=,");
    bool has_value = setting[length] == '=';
    while (length > 0 && setting[length - 1] == ' ') {
        length--;
    }
    for (size_t i = 0; has_value && i < sizeof words / sizeof *words; i++) {
        if (has_word(setting, length, words[i])) {
            return !ends_in(setting, length, "_file");
        }
    }
    return false;
}

void secret_setting_write_shown(const char *settings, struct text *out) {
    bool is_secret = false;
    for (const char *item = settings; *item != '\0';) {
        size_t length = strcspn(item, ",");
        size_t key = strcspn(item, "=,");
        bool has_value = item[key] == '=';
        is_secret = has_value ? secret_setting_is_one(item) : is_secret;
        if (is_secret) {
            text_append_bytes(out, item, has_value ? key + 1 : 0);
            text_append(out, STARS);
        } else {
            text_append_bytes(out, item, length);
        }
        item += length;
        if (*item == ',') {
            text_append(out, ",");
            item++;
        }
    }
}

/* Config. */

static void clear_lists(struct text_list *lists, int count) {
    for (int i = 0; i < count && lists != NULL; i++) {
        text_list_clear(&lists[i]);
    }
    free(lists);
}

void launch_config_clear(struct launch_config *config) {
    free(config->told_master_host);
    clear_lists(config->rank_variables, config->worker_count);
    clear_lists(config->rank_arguments, config->worker_count);
    free(config->device_name);
    free(config->rdzv_backend);
    free(config->run_id);
    free(config->dynamic.host);
    free(config->dynamic.file);
    free(config->dynamic.register_engine);
    free(config->dynamic.register_endpoint);
    free(config->master_host);
    free(config->local_address);
    free(config->job_token);
    free(config->token_file);
    free(config->munge_socket);
    text_list_clear(&config->rdzv_conf);
    free(config->script);
    text_list_clear(&config->script_arguments);
    free(config->python);
    free(config->role);
    free(config->timer_file);
    free(config->signals_to_handle);
    free(config->event_file);
    free(config->chronicle);
    free(config->node_check);
    free(config->metrics_file);
    free(config->health_address);
    free(config->health_hosts);
    free(config->log_dir);
    free(config->redirects.by_rank);
    free(config->tee.by_rank);
    free(config->log_line_prefix_template);
    free(config->shown_node);
    free(config->local_ranks_filter);
    text_list_clear(&config->duplicate_stdout_filters);
    text_list_clear(&config->duplicate_stderr_filters);
    free(config->notice);
    text_list_clear(&config->warnings);
    text_list_clear(&config->meeting_warnings);
    *config = (struct launch_config){0};
}

int launch_streams_for(const struct launch_streams *streams, int local_rank) {
    if (streams->by_rank == NULL) {
        return streams->for_all;
    }
    if ((size_t)local_rank >= streams->rank_count || streams->by_rank[local_rank] < 0) {
        return 0;
    }
    return streams->by_rank[local_rank];
}
