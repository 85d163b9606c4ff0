/* SPDX-License-Identifier: BSD-3-Clause */
/* Asks the host of a job's store about the whole job over the job's endpoint
 * (host/telling/job_asking), which it finds as a node would, and proves itself as a node does. */
#ifndef MUSTER_MAIN_TELLING_JOB_HOST_H
#define MUSTER_MAIN_TELLING_JOB_HOST_H

#include "base/bytes.h"
#include "base/failure.h"
#include "base/text.h"
#include "options/argparse/option_result.h"
#include "wire/telling/node_telling.h"

/* Options by which a command says where a job is that has no agent on this machine. */
#define JOB_HOST_OPTION_DEFINITIONS                                                                \
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

struct job_host;

#define JOB_HOST_ANSWER_MAXIMUM ((size_t)32 << 20)

/* EXIT_SUCCESS, or the exit status of what has been said on stderr. NULL where the options name no
 * endpoint. */
int job_host_open(const char *program, const struct option_result *options,
    const struct text_list *environment, struct job_host **out_host);
/* Accepts NULL. */
void job_host_free(struct job_host *host);

/* Appends the answer. As job_asking. */
__attribute__((warn_unused_result)) enum failure_code job_host_ask(struct job_host *host,
    enum job_question_kind kind, int64_t after, struct bytes *answer, struct failure *failure);

#endif
