/* SPDX-License-Identifier: BSD-3-Clause */
/* What the workers of a job do now. Their agents look, which neither stop nor end them. */
#include "main/telling/status_command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/telling/folded_stacks.h"
#include "main/command.h"
#include "main/telling/job_inquiry.h"
#include "options/argparse/option_parser.h"
#include "wire/json/json_document.h"
#include "wire/telling/stacks_json.h"

#define SAMPLES_MAXIMUM 3600
/* An agent takes up to 5 s, and others may have asked before. */
#define PATIENCE_SECONDS 30
/* Whose ranks are counted one by one, in words. */
#define COUNTED_RANKS_MAXIMUM 8

/* All that was seen of the job. */
struct seen {
    struct inquiry inquiry;
    struct rank_ranges ranks; /* none: all */
    struct folded_stacks folded;
    int samples; /* that are wanted */
    int looks;   /* at one worker each */
};

/* Asking. */

static void take_line(void *context, struct slice line) {
    struct seen *seen = context;
    if (stacks_json_read(line, seen->samples > 1, &seen->folded) != FAILURE_NONE) {
        fprintf(stderr, "%s: a line that is not understood is left out\n", seen->inquiry.program);
    }
}

/* Whether any agent has answered. */
static bool take_sample(struct seen *seen) {
    bool has_answer = false;
    struct text path = {0};
    text_append(&path, "/v1/stacks");
    if (seen->ranks.count > 0) {
        text_append(&path, "?ranks=");
        rank_ranges_append(&seen->ranks, &path);
    }
    for (size_t i = 0; i < seen->inquiry.agents.count; i++) {
        struct failure failure = {0};
        if (job_inquiry_ask_one(&seen->inquiry, i, text_string(&path), take_line, seen, &failure) ==
            FAILURE_NONE) {
            has_answer = true;
        } else {
            fprintf(stderr, "%s: agent %lld has not answered: %s\n", seen->inquiry.program,
                (long long)seen->inquiry.agents.items[i].pid, failure.message);
        }
    }
    text_clear(&path);
    return has_answer;
}

/* The agents take one look a second. */
static bool take_samples(struct seen *seen) {
    const struct timespec second = {.tv_sec = 1};
    bool has_answer = take_sample(seen);
    for (int i = 1; i < seen->samples && has_answer && nanosleep(&second, NULL) == 0; i++) {
        has_answer = take_sample(seen);
    }
    folded_stacks_sort(&seen->folded);
    for (size_t i = 0; i < seen->folded.count; i++) {
        seen->looks += seen->folded.items[i].times;
    }
    return seen->looks > 0;
}

static bool was_seen(const struct seen *seen, const struct rank_range *range) {
    bool is_there = false;
    for (size_t i = 0; i < seen->folded.count; i++) {
        const struct folded_stack *one = &seen->folded.items[i];
        for (size_t j = 0; j < one->rank_count; j++) {
            is_there = is_there ||
                       (one->ranks[j].rank >= range->first && one->ranks[j].rank <= range->last);
        }
    }
    return is_there;
}

/* False where one that was asked for is not here. */
static bool say_missing(const struct seen *seen) {
    bool is_whole = true;
    for (size_t i = 0; i < seen->ranks.count; i++) {
        if (!was_seen(seen, &seen->ranks.items[i])) {
            struct rank_ranges missing = {.count = 1};
            struct text words = {0};
            missing.items[0] = seen->ranks.items[i];
            rank_ranges_append(&missing, &words);
            fprintf(stderr, "%s: rank %s: no agent of this machine has such a worker now\n",
                seen->inquiry.program, text_string(&words));
            text_clear(&words);
            is_whole = false;
        }
    }
    return is_whole;
}

/* Showing. */

static void append_counts(const struct folded_stack *one, struct text *out) {
    for (size_t i = 0; i < one->rank_count; i++) {
        text_append_format(
            out, "%srank %d %d times", i > 0 ? ", " : "", one->ranks[i].rank, one->ranks[i].times);
    }
}

static void append_stack(const char *stack, struct text *out) {
    while (*stack != '\0') {
        size_t length = strcspn(stack, "\n") + 1;
        text_append(out, "    ");
        text_append_bytes(out, stack, length);
        stack += length;
    }
}

static void append_words(const struct seen *seen, struct text *out) {
    bool has_samples = seen->samples > 1;
    for (size_t i = 0; i < seen->folded.count; i++) {
        const struct folded_stack *one = &seen->folded.items[i];
        if (one->stack == NULL) {
            text_append(out, "no stack: ");
        }
        text_append_format(out, "%d of %d %s: ", one->times, seen->looks,
            has_samples        ? "looks"
            : seen->looks == 1 ? "worker"
                               : "workers");
        if (has_samples && one->rank_count <= COUNTED_RANKS_MAXIMUM) {
            append_counts(one, out);
        } else {
            folded_stack_append_ranks(one, out);
        }
        text_append_format(out, ": %s\n", one->words);
        append_stack(one->stack != NULL ? one->stack : "", out);
    }
}

static void append_json(const struct seen *seen, struct text *out) {
    text_append(out, "{\"schema\":\"" STACKS_SCHEMA "\",\"run_id\":");
    json_text_write(seen->inquiry.agents.items[0].run_id, out);
    text_append_format(
        out, ",\"samples\":%d,\"looks\":%d,\"stacks\":[", seen->samples, seen->looks);
    for (size_t i = 0; i < seen->folded.count; i++) {
        text_append(out, i > 0 ? "," : "");
        stacks_json_write_counted(&seen->folded.items[i], out);
    }
    text_append(out, "]}\n");
}

/* The command. */

static const struct option_definition definitions[] = {
    OPTION_DEFINITION_HELP,
    {.destination = "all", .names = {"--all"}, .kind = OPTION_FLAG, .help = "Of all workers here."},
    {.destination = "samples",
        .names = {"--samples"},
        .kind = OPTION_INTEGER,
        .default_text = "1",
        .help = "Look so often, once a second, and count by the innermost line: a worker that is "
                "slower than the others is elsewhere more often. Default: 1."},
    {.destination = "json",
        .names = {"--json"},
        .kind = OPTION_FLAG,
        .help = "Print one JSON object (muster.stacks/1)."},
    JOB_SLURM_OPTION_DEFINITION,
    {.destination = "words",
        .arity = OPTION_ARITY_ANY,
        .help = "The job's --rdzv-id, where several jobs run here, and ranks, as 3 or 0-7,12."},
};

static const struct option_table table = {
    .description =
        "Show what the workers of a job do now that are on this machine: the Python stack of each "
        "one's first thread, those that are at the same line together, the rare ones first. The "
        "workers are not stopped and run on. Exit status: 0 all were seen; 1 nobody could be "
        "asked, or not all that were asked for were seen; 2 a usage mistake.",
    .definitions = definitions,
    .definition_count = sizeof definitions / sizeof *definitions,
};

/* The words are ranks, but for the first one, which may be the job's name. */
static bool read_words(struct option_result *result, struct seen *seen, const char **out_job) {
    const struct option_value *words = option_result_value(result, "words");
    int64_t samples = option_result_value(result, "samples")->integer;
    bool all = option_result_value(result, "all")->flag;
    size_t first = 0;
    *out_job = NULL;
    if (words->list.count > 0) {
        struct rank_ranges ignored = {0};
        if (!rank_ranges_add(&ignored, words->list.items[0])) {
            *out_job = words->list.items[0];
            first = 1;
        }
    }
    for (size_t i = first; i < words->list.count; i++) {
        if (!rank_ranges_add(&seen->ranks, words->list.items[i])) {
            option_result_reject(result, "words", "'%s' is no list of at most %d ranks, as 0-7,12",
                words->list.items[i], RANK_RANGES_MAXIMUM);
            return false;
        }
    }
    if (all == (seen->ranks.count > 0)) {
        option_result_reject(result, "words", "%s",
            all ? "either ranks or --all" : "which ranks? As 3 or 0-7,12, or --all");
        return false;
    }
    if (samples < 1 || samples > SAMPLES_MAXIMUM) {
        option_result_reject(result, "samples", "must be 1 to %d", SAMPLES_MAXIMUM);
        return false;
    }
    seen->samples = (int)samples;
    return true;
}

static bool seen_all_stacks(const struct seen *seen) {
    bool all = true;
    for (size_t i = 0; i < seen->folded.count; i++) {
        all = all && seen->folded.items[i].stack != NULL;
    }
    return all;
}

static int show(struct seen *seen, bool json) {
    struct text out = {0};
    if (!take_samples(seen)) {
        say_missing(seen);
        fprintf(stderr, "%s: error: no worker was seen\n", seen->inquiry.program);
        return EXIT_FAILURE;
    }
    if (json) {
        append_json(seen, &out);
    } else {
        append_words(seen, &out);
    }
    fputs(text_string(&out), stdout);
    text_clear(&out);
    if (!seen_all_stacks(seen)) {
        fprintf(stderr,
            "%s: there is no stack of what is no Python, nor of a Python before 3.13 in a job "
            "without standby workers (--standby on)\n",
            seen->inquiry.program);
    }
    bool is_written = fflush(stdout) == 0;
    return say_missing(seen) && is_written ? EXIT_SUCCESS : EXIT_FAILURE;
}

int stacks_command(const struct text_list *arguments, const struct text_list *environment) {
    struct seen seen = {.inquiry = {.program = "muster stacks",
                            .patience = duration_from_seconds(PATIENCE_SECONDS)}};
    struct option_result result;
    const char *job;
    int code;
    option_parse(&table, seen.inquiry.program, arguments, environment, &result);
    if (result.outcome != OPTION_OUTCOME_VALUES || !read_words(&result, &seen, &job)) {
        code = command_print(&result);
    } else {
        code = job_inquiry_find(
            &seen.inquiry, job, option_result_value(&result, "slurm_job")->text, environment);
        code =
            code == EXIT_SUCCESS ? show(&seen, option_result_value(&result, "json")->flag) : code;
    }
    option_result_clear(&result);
    folded_stacks_clear(&seen.folded);
    job_inquiry_clear(&seen.inquiry);
    return code;
}
