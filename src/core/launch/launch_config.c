/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/launch/launch_config.h"

#include <stdlib.h>

void launch_config_clear(struct launch_config *config) {
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
