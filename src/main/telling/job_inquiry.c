/* SPDX-License-Identifier: BSD-3-Clause */
#include "main/telling/job_inquiry.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "host/loop/snapshot_socket.h"
#include "main/exit_status.h"
#include "wire/telling/chronicle_json.h"

void job_inquiry_drop_entries(struct inquiry *inquiry) {
    for (size_t i = 0; i < inquiry->count; i++) {
        chronicle_entry_clear(&inquiry->entries[i].entry);
    }
    inquiry->count = 0;
}

void job_inquiry_clear(struct inquiry *inquiry) {
    job_inquiry_drop_entries(inquiry);
    free(inquiry->entries);
    free(inquiry->seqs);
    free(inquiry->answers);
    job_list_clear(&inquiry->agents);
}

static const char *shown(const char *text) {
    return text != NULL ? text : "-";
}

static bool is_of_one_job(
    const struct job_announcement *left, const struct job_announcement *right) {
    return text_equals(left->run_id, right->run_id) &&
           text_equals(
               shown(left->facts[JOB_FACT_ENDPOINT]), shown(right->facts[JOB_FACT_ENDPOINT]));
}

static int say_none(const char *program, const char *wanted, const struct text_list *places) {
    fprintf(stderr,
        "%s: error: no agent of %s%s%s announces itself on this machine to this user (in ", program,
        wanted != NULL ? "job '" : "a job", wanted != NULL ? wanted : "",
        wanted != NULL ? "'" : "");
    for (size_t i = 0; i < places->count; i++) {
        fprintf(stderr, "%s%s", i > 0 ? ", " : "", places->items[i]);
    }
    fputs(")\n", stderr);
    return EXIT_FAILURE;
}

static int say_several(const struct inquiry *inquiry) {
    fprintf(stderr, "%s: error: several jobs run on this machine; write which one is meant:\n",
        inquiry->program);
    for (size_t i = 0; i < inquiry->agents.count; i++) {
        const struct job_announcement *job = &inquiry->agents.items[i];
        fprintf(stderr, "  %s    at %s, agent %" PRId64 ", %s\n", job->run_id,
            shown(job->facts[JOB_FACT_ENDPOINT]), job->pid, shown(job->facts[JOB_FACT_NODE]));
    }
    return EXIT_STATUS_USAGE;
}

/* Keeps the agents of the job of that name; NULL: of the one that there is. */
static void keep_wanted(struct job_list *agents, const char *wanted) {
    size_t kept = 0;
    for (size_t i = 0; i < agents->count; i++) {
        if (wanted == NULL || text_equals(agents->items[i].run_id, wanted)) {
            agents->items[kept++] = agents->items[i];
        } else {
            job_announcement_clear(&agents->items[i]);
        }
    }
    agents->count = kept;
}

int job_inquiry_find(
    struct inquiry *inquiry, const char *wanted, const struct text_list *environment) {
    struct text_list places = {0};
    struct text_list refusals = {0};
    int status = EXIT_SUCCESS;
    job_directory_places(environment, &places);
    job_directory_find_agents(&places, &inquiry->agents, &refusals);
    for (size_t i = 0; i < refusals.count; i++) {
        fprintf(
            stderr, "%s: not looking for jobs there: %s\n", inquiry->program, refusals.items[i]);
    }
    keep_wanted(&inquiry->agents, wanted);
    if (inquiry->agents.count == 0) {
        status = say_none(inquiry->program, wanted, &places);
    }
    for (size_t i = 1; i < inquiry->agents.count && status == EXIT_SUCCESS; i++) {
        if (!is_of_one_job(&inquiry->agents.items[0], &inquiry->agents.items[i])) {
            status = say_several(inquiry);
        }
    }
    inquiry->seqs = memory_allocate((inquiry->agents.count + 1) * sizeof *inquiry->seqs);
    inquiry->answers = memory_allocate((inquiry->agents.count + 1) * sizeof *inquiry->answers);
    text_list_clear(&places);
    text_list_clear(&refusals);
    return status;
}

/* Asking. */

/* An answer, as its lines come. */
struct hearing {
    void (*take)(void *context, struct slice line);
    void *context;
    bool is_found;
    bool is_body;
    bool is_answered;
};

static void take_line(void *context, struct slice line) {
    struct hearing *hearing = context;
    static const char found[] = "HTTP/1.1 200 ";
    if (hearing->is_body) {
        if (hearing->is_found) {
            hearing->take(hearing->context, line);
        }
        return;
    }
    hearing->is_found |= line.length >= sizeof found - 1 && !hearing->is_answered &&
                         memcmp(line.data, found, sizeof found - 1) == 0;
    hearing->is_answered = true;
    hearing->is_body = line.length == 0 || (line.length == 1 && line.data[0] == '\r');
}

enum failure_code job_inquiry_ask_one(const struct inquiry *inquiry, size_t agent, const char *path,
    void (*take)(void *context, struct slice line), void *context, struct failure *failure) {
    struct hearing hearing = {.take = take, .context = context};
    char *question = text_format("GET %s HTTP/1.1\r\nHost: muster\r\n\r\n", path);
    enum failure_code code =
        snapshot_socket_read(inquiry->agents.items[agent].facts[JOB_FACT_SOCKET], question,
            inquiry->patience, take_line, &hearing, failure);
    free(question);
    return code == FAILURE_NONE && !hearing.is_found
               ? failure_set(failure, FAILURE_MALFORMED, "the agent has no answer")
               : code;
}

/* The entries of one agent. */
struct reading {
    struct inquiry *inquiry;
    size_t agent;
    size_t count;
};

static void take_entry(void *context, struct slice line) {
    struct reading *reading = context;
    struct inquiry *inquiry = reading->inquiry;
    struct chronicle_entry entry;
    if (reading->count++ >= CHRONICLE_ENTRIES_MAXIMUM ||
        chronicle_json_read_entry(line, &entry) != FAILURE_NONE) {
        return; /* what a later version tells is not known here */
    }
    inquiry->entries = memory_reserve(
        inquiry->entries, &inquiry->capacity, inquiry->count + 1, sizeof *inquiry->entries);
    inquiry->entries[inquiry->count++] = (struct told_entry){entry, reading->agent};
    inquiry->seqs[reading->agent] = entry.seq;
}

static int compare_entries(const void *left, const void *right) {
    const struct told_entry *one = left;
    const struct told_entry *other = right;
    int64_t times[] = {one->entry.time.nanoseconds, other->entry.time.nanoseconds};
    if (times[0] != times[1]) {
        return times[0] < times[1] ? -1 : 1;
    }
    if (one->agent != other->agent) {
        return one->agent < other->agent ? -1 : 1;
    }
    return one->entry.seq < other->entry.seq ? -1 : one->entry.seq > other->entry.seq;
}

static void sort_entries(struct inquiry *inquiry) {
    if (inquiry->count > 1) {
        qsort(inquiry->entries, inquiry->count, sizeof *inquiry->entries, compare_entries);
    }
}

bool job_inquiry_ask(struct inquiry *inquiry, struct failure *failure) {
    bool has_answer = false;
    for (size_t i = 0; i < inquiry->agents.count; i++) {
        struct reading reading = {.inquiry = inquiry, .agent = i};
        char *path = text_format("/v1/events?after=%" PRId64, inquiry->seqs[i]);
        inquiry->answers[i] =
            job_inquiry_ask_one(inquiry, i, path, take_entry, &reading, failure) == FAILURE_NONE;
        free(path);
        has_answer = has_answer || inquiry->answers[i];
    }
    sort_entries(inquiry);
    return has_answer;
}

void job_inquiry_read_rest(struct inquiry *inquiry) {
    char line[CHRONICLE_LINE_READ_MAXIMUM];
    for (size_t i = 0; i < inquiry->agents.count; i++) {
        const char *log_dir = inquiry->agents.items[i].facts[JOB_FACT_LOG_DIR];
        struct reading reading = {.inquiry = inquiry, .agent = i};
        int64_t last = inquiry->seqs[i];
        size_t kept = inquiry->count;
        char *path = text_format("%s/events.jsonl", log_dir != NULL ? log_dir : "");
        FILE *file = log_dir != NULL ? fopen(path, "re") : NULL;
        while (file != NULL && fgets(line, sizeof line, file) != NULL) {
            take_entry(&reading, (struct slice){(const uint8_t *)line, strcspn(line, "\n")});
            if (inquiry->count > kept && inquiry->seqs[i] <= last) {
                chronicle_entry_clear(&inquiry->entries[--inquiry->count].entry);
            }
            kept = inquiry->count;
        }
        if (file != NULL) {
            fclose(file);
        }
        free(path);
    }
    sort_entries(inquiry);
}
