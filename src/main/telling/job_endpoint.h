/* SPDX-License-Identifier: BSD-3-Clause */
/* The options by which a command says where a job is that has no agent on this machine. They are
 * read as a node of the job reads them, with its defaults and rules (agent/job_host). */
#ifndef MUSTER_MAIN_TELLING_JOB_ENDPOINT_H
#define MUSTER_MAIN_TELLING_JOB_ENDPOINT_H

#include "agent/job_host.h"
#include "base/text.h"
#include "options/argparse/option_result.h"
#include "options/launch/launch_options.h"

#define JOB_SLURM_OPTION_DEFINITION                                                                \
    {                                                                                              \
        .destination = "slurm_job", .names = {"--slurm-job"},                                      \
        .help = "The job of this number, or step as 4711.0, of Slurm: an agent of it on this "     \
                "machine, or else the host of its store, where `srun muster run` has put it."      \
    }

#define JOB_ENDPOINT_OPTION_DEFINITIONS                                                            \
    JOB_SLURM_OPTION_DEFINITION,                                                                   \
    {.destination = "rdzv_endpoint",                                                               \
        .names = {"--rdzv-endpoint"},                                                              \
        .help =                                                                                    \
            "Ask the host of the job's store there, from any machine. As the job's nodes were "    \
            "told."},                                                                              \
        {.destination = "rdzv_backend",                                                            \
            .names = {"--rdzv-backend"},                                                           \
            .default_text = "c10d",                                                                \
            .help = "With --rdzv-endpoint: c10d, static, dir, etcd or k8s. Default: c10d."},       \
        {.destination = "rdzv_id",                                                                 \
            .names = {"--rdzv-id"},                                                                \
            .default_text = "none",                                                                \
            .help = "With --rdzv-endpoint: the job's name. Default: none, as of the nodes."},      \
        {.destination = "rdzv_conf",                                                               \
            .names = {"--rdzv-conf"},                                                              \
            .default_text = "",                                                                    \
            .help = "With --rdzv-endpoint: as of the nodes."},                                     \
        {.destination = "token_file",                                                              \
            .names = {"--token-file"},                                                             \
            .help = "With --rdzv-endpoint: file with the job's token (or MUSTER_JOB_TOKEN)."},     \
        {.destination = "auth",                                                                    \
            .names = {"--auth"},                                                                   \
            .help = "With --rdzv-endpoint: how the job's nodes prove themselves: auto, munge or "  \
                    "none."},                                                                      \
    {                                                                                              \
        .destination = "timeout", .names = {"--timeout"}, .kind = OPTION_FLOAT,                    \
        .default_text = "10", .help = "Seconds to wait for an answer. Default: 10."                \
    }

/* A zeroed struct is none. */
struct job_endpoint {
    struct launch_options options; /* what a node of the job would be told */
    struct job_host *host;         /* NULL: the options name no endpoint */
};

/* Whether it is a job of Slurm's, or a step of one. */
bool job_endpoint_is_step(const char *word);
/* EXIT_SUCCESS, or the exit status of what has been said on stderr. The caller clears it. */
int job_endpoint_open(const char *program, const struct option_result *options,
    const struct text_list *environment, struct job_endpoint *out_endpoint);
void job_endpoint_clear(struct job_endpoint *endpoint);

#endif
