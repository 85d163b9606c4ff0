/* SPDX-License-Identifier: BSD-3-Clause */
#include "main/store/store_finding.h"

#include <inttypes.h>
#include <stdio.h>

static void say_refusals(const char *program, const struct text_list *refusals) {
    for (size_t i = 0; i < refusals->count; i++) {
        fprintf(
            stderr, "%s: warning: not looking for jobs there: %s\n", program, refusals->items[i]);
    }
}

static void say_none(const char *program, const struct text_list *places) {
    fprintf(stderr, "%s: no job of this user announces itself on this machine (in ", program);
    for (size_t i = 0; i < places->count; i++) {
        fprintf(stderr, "%s%s", i > 0 ? ", " : "", places->items[i]);
    }
    fputs("); --host and --port say where a store is\n", stderr);
}

static void say_several(const char *program, const struct job_list *jobs) {
    fprintf(stderr, "%s: error: %zu jobs run on this machine; write which store is meant:\n",
        program, jobs->count);
    for (size_t i = 0; i < jobs->count; i++) {
        const struct job_announcement *job = &jobs->items[i];
        fprintf(stderr, "  --host %s --port %d    job '%s', agent %" PRId64 "\n", job->host,
            job->port, job->run_id, job->pid);
    }
}

enum store_finding store_find_job(
    const char *program, const struct text_list *environment, struct job_list *out_jobs) {
    struct text_list places = {0};
    struct text_list refusals = {0};
    enum store_finding finding = STORE_FINDING_ONE;
    job_directory_places(environment, &places);
    job_directory_find(&places, out_jobs, &refusals);
    say_refusals(program, &refusals);
    if (out_jobs->count == 0) {
        finding = STORE_FINDING_NONE;
        say_none(program, &places);
    } else if (out_jobs->count > 1) {
        finding = STORE_FINDING_SEVERAL;
        say_several(program, out_jobs);
    } else {
        const struct job_announcement *job = &out_jobs->items[0];
        fprintf(stderr, "%s: job '%s': --host %s --port %d\n", program, job->run_id, job->host,
            job->port);
    }
    text_list_clear(&places);
    text_list_clear(&refusals);
    return finding;
}
