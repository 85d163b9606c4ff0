/* SPDX-License-Identifier: BSD-3-Clause */
/* Who can be asked about a job, and what they have told. */
#ifndef MUSTER_MAIN_TELLING_JOB_INQUIRY_H
#define MUSTER_MAIN_TELLING_JOB_INQUIRY_H

#include "agent/job_host.h"
#include "base/duration.h"
#include "base/failure.h"
#include "base/text.h"
#include "core/telling/chronicle.h"
#include "host/telling/job_directory.h"
#include "options/argparse/option_result.h"
#include "options/launch/launch_options.h"
#include "wire/telling/status_json.h"

/* The options by which a command says where a job is that has no agent on this machine. They are
 * read as a node of the job reads them, with its defaults and rules (agent/job_host). */

#define JOB_SLURM_OPTION_DEFINITION                                                                \
    {                                                                                              \
        .destination = "slurm_job", .names = {"--slurm-job"},                                      \
        .help = "The job of this number, or step as 4711.0, of Slurm: an agent of it on this "     \
                "machine, or else the host of its store, where `srun muster run` has put it."      \
    }

#define JOB_ENDPOINT_OPTION_DEFINITIONS                                                            \
    JOB_SLURM_OPTION_DEFINITION,                                                                   \
        {.destination = "rdzv_endpoint",                                                           \
            .names = {"--rdzv-endpoint"},                                                          \
            .help = "Ask the host of the job's store there, from any machine. As the job's nodes " \
                    "were "                                                                        \
                    "told."},                                                                      \
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
/* EXIT_SUCCESS, or the exit status of what has been said on stderr. job_inquiry_clear clears
 * it. */
int job_endpoint_open(const char *program, const struct option_result *options,
    const struct text_list *environment, struct job_endpoint *out_endpoint);

struct told_entry {
    struct chronicle_entry entry;
    size_t agent; /* that has told it */
};

struct inquiry {
    const char *program;
    struct job_endpoint endpoint; /* whom to ask elsewhere; none: agents of this machine */
    bool is_of_host;              /* what has been told is the host's: */
    struct status_seen seen;
    int64_t host_seq;         /* the last of the job's that has been read */
    struct duration patience; /* with one agent */
    struct job_list agents;
    int64_t *seqs; /* the last of each agent's that has been read */
    bool *answers; /* whether it has answered, the last time */
    struct told_entry *entries;
    size_t count;
    size_t capacity;
};

/* EXIT_SUCCESS, or the exit status of what has been said on stderr. `wanted`: the job's name; NULL:
 * the one that there is. */
/* `slurm_job`: the same of Slurm; NULL: any. */
int job_inquiry_find(struct inquiry *inquiry, const char *wanted, const char *slurm_job,
    const struct text_list *environment);
/* Whether an agent of this job of Slurm's announces itself here. */
bool job_inquiry_has_agent(const char *slurm_job, const struct text_list *environment);
void job_inquiry_clear(struct inquiry *inquiry);

/* Whether any has answered; else `failure`. What is new is there, in the order of its times. */
bool job_inquiry_ask(struct inquiry *inquiry, struct failure *failure);
/* Asks one agent. `take` gets each line of its answer; FAILURE_MALFORMED where it has none. */
__attribute__((warn_unused_result)) enum failure_code job_inquiry_ask_one(
    const struct inquiry *inquiry, size_t agent, const char *path,
    void (*take)(void *context, struct slice line), void *context, struct failure *failure);
/* Asks the host of the job's store, through an agent or over the job's endpoint, how the job
 * stands; the caller clears the status. FAILURE_MISSING: there is none that knows. */
__attribute__((warn_unused_result)) enum failure_code job_inquiry_ask_host(
    struct inquiry *inquiry, struct chronicle_status *out_status, struct failure *failure);
/* The same for what has happened; what is new is there. */
__attribute__((warn_unused_result)) enum failure_code job_inquiry_ask_host_for_events(
    struct inquiry *inquiry, struct failure *failure);
/* Calls `take` for what the agents tell as they tell it, until none is there any more, `take`
 * returns false, or nobody reads the output. */
void job_inquiry_follow(
    struct inquiry *inquiry, bool (*take)(void *context, struct inquiry *inquiry), void *context);
/* What agents have told that ended since they were asked last: it is in their files. */
void job_inquiry_read_rest(struct inquiry *inquiry);
/* In the order of their times. */
void job_inquiry_sort(struct inquiry *inquiry);
/* Forgets what they have told, but not until where. */
void job_inquiry_drop_entries(struct inquiry *inquiry);
/* Forgets until where, too: whoever is asked next tells all that it keeps. */
void job_inquiry_begin_again(struct inquiry *inquiry);

#endif
