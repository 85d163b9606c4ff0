/* SPDX-License-Identifier: BSD-3-Clause */
/* One node of an elastic job whose record is kept in a directory, by a backend of the program's
 * own:
 *
 *     ./elastic_node DIRECTORY MIN MAX 'python3 train.py'
 *
 * Each node of the job runs it with the same directory. Before the node takes part in a further
 * round it checks itself with the shell command in $NODE_CHECK: when that fails, the node ends and
 * the others go on without it. */
#define _GNU_SOURCE
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <muster/agent.h>

#include "directory_backend.h"

/* Both are called in the agent's process: the watch of the directory is the agent's. */

static enum muster_error create(void *context,
    const struct muster_rendezvous_parameters *parameters,
    struct muster_rendezvous_backend *out_backend, struct muster_failure *failure) {
    static struct directory directory;
    (void)context;
    if (!directory_open(&directory, out_backend)) {
        snprintf(failure->message, sizeof failure->message, "%s cannot be watched",
            parameters->endpoint);
        return MUSTER_ERROR_SYSTEM;
    }
    return MUSTER_OK;
}

static enum muster_error check_node(
    void *context, const struct muster_worker_group *group, struct muster_failure *failure) {
    const char *check = getenv("NODE_CHECK");
    (void)context;
    (void)group;
    if (check == NULL || system(check) == 0) {
        return MUSTER_OK;
    }
    snprintf(failure->message, sizeof failure->message, "'%s' has failed", check);
    return MUSTER_ERROR_SYSTEM;
}

/* In the program. */

static void show(struct muster_agent *agent) {
    static int shown = -1;
    const struct muster_worker_group *group;
    if (muster_agent_worker_group(agent, &group, NULL) == MUSTER_OK &&
        group->state == MUSTER_WORKER_STATE_HEALTHY && shown != group->group_world_size) {
        shown = group->group_world_size;
        printf("node %d of %d runs process %ld\n", group->group_rank, group->group_world_size,
            group->workers[0].pid);
        fflush(stdout);
    }
}

static int wait_for_end(struct muster_agent *agent) {
    const struct muster_run_result *result;
    while (muster_agent_result(agent, &result, NULL) == MUSTER_ERROR_STATE) {
        struct pollfd ready = {.fd = muster_agent_fd(agent), .events = POLLIN};
        if (poll(&ready, 1, -1) == 1 && muster_agent_process(agent, NULL) == MUSTER_OK) {
            show(agent);
        }
    }
    if (result->message != NULL) {
        printf("ended: %s\n", result->message);
    }
    return result->exit_status;
}

int main(int argc, char **argv) {
    struct muster_agent_settings settings = MUSTER_AGENT_SETTINGS;
    struct muster_agent *agent;
    struct muster_failure failure;
    char place[4096];
    char store[sizeof place + sizeof "/store"];
    if (argc != 5 || chdir(argv[1]) != 0 || getcwd(place, sizeof place) == NULL) {
        fprintf(stderr, "usage: elastic_node DIRECTORY MIN MAX COMMAND\n");
        return 2;
    }
    const char *const args[] = {"-c", argv[4], NULL};
    snprintf(store, sizeof store, "%s/store", place);
    settings.entrypoint = "sh";
    settings.args = args;
    settings.rdzv_backend = "directory";
    settings.rdzv_endpoint = place;
    settings.rdzv_store = store;
    settings.run_id = "elastic";
    settings.min_nodes = atoi(argv[2]);
    settings.max_nodes = atoi(argv[3]);
    settings.restart_workers = check_node;
    if (muster_rendezvous_register("directory", create, NULL, &failure) != MUSTER_OK ||
        muster_agent_start(&settings, &agent, &failure) != MUSTER_OK) {
        fprintf(stderr, "elastic_node: %s\n", failure.message);
        return 1;
    }
    int status = wait_for_end(agent);
    muster_agent_free(agent);
    return status;
}
