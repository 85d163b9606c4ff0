/* SPDX-License-Identifier: BSD-3-Clause */
#include "whole_seeds.h"

#include <stdio.h>

#include "base/memory.h"

#define SEEDS_DEFAULT 10000

static uint64_t all_seeds = SEEDS_DEFAULT;
static uint64_t first_seed;

/* To be freed; NULL: all went as it should. */
static char *complaint_about(const struct whole_settings *settings, whole_checker *check) {
    struct whole_outcome outcome = whole_cluster_play(settings);
    char *complaint = memory_duplicate_string(outcome.complaint);
    if (complaint == NULL && check != NULL) {
        complaint = memory_duplicate_string(check(settings, &outcome));
    }
    whole_outcome_clear(&outcome);
    return complaint;
}

static void play_one(struct whole_settings settings, whole_checker *check) {
    char *complaint = complaint_about(&settings, check);
    if (complaint == NULL) {
        return;
    }
    if (!settings.is_printed) {
        free(complaint);
        settings.is_printed = true;
        complaint = complaint_about(&settings, check);
    }
    fflush(stdout);
    print_error("seed %llu, %s\n", (unsigned long long)settings.seed, complaint);
    free(complaint);
    fail();
}

void whole_play_seeds(whole_job_maker *job, uint64_t seeds, whole_checker *check) {
    const char *only = getenv("SIMULATION_SEED");
    if (only != NULL) {
        struct whole_settings settings = job(strtoull(only, NULL, 10));
        settings.is_printed = true;
        play_one(settings, check);
        return;
    }
    for (uint64_t seed = 0; seed < seeds; seed++) {
        play_one(job(first_seed + seed), check);
    }
}

void whole_play_share(whole_job_maker *job, uint64_t share, whole_checker *check) {
    whole_play_seeds(job, (all_seeds * share + SEEDS_DEFAULT - 1) / SEEDS_DEFAULT, check);
}

bool whole_is_played_whole(void) {
    return all_seeds >= SEEDS_DEFAULT;
}

void whole_take_arguments(int argument_count, char **arguments) {
    if (argument_count > 1) {
        all_seeds = strtoull(arguments[1], NULL, 10);
    }
    if (argument_count > 2) {
        cmocka_set_test_filter(arguments[2]);
    }
    if (argument_count > 3) {
        first_seed = strtoull(arguments[3], NULL, 10);
    }
}
