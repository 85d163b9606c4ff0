/* SPDX-License-Identifier: BSD-3-Clause */
#include "main/telling/job_inquiry.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/utf8.h"
#include "host/loop/snapshot_socket.h"
#include "host/process/process_spawn.h"
#include "main/command.h"
#include "options/slurm/slurm_step.h"
#include "wire/telling/chronicle_json.h"

#define ANSWER_MAXIMUM ((size_t)4 << 20)

/* Slurm. */

/* What squeue prints, or why it does not; false: that it cannot say. */
static bool ask_slurm(const char *job, struct duration patience, struct text *out) {
    const char *const words[] = {"squeue", "--noheader", "--steps", job, "--format=%i %N"};
    extern char **environ;
    struct text_list arguments = {0};
    struct text_list environment = {0};
    struct process_answer answer = {0};
    struct failure failure = {0};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        text_list_add(&arguments, words[i]);
    }
    for (char **variable = environ; *variable != NULL; variable++) {
        text_list_add(&environment, *variable);
    }
    enum failure_code code =
        process_ask(&arguments, &environment, patience, ANSWER_MAXIMUM, true, &answer, &failure);
    text_list_clear(&arguments);
    text_list_clear(&environment);
    *out = answer.said;
    if (code != FAILURE_NONE || answer.is_late) {
        text_clear(out);
        text_append(out, code != FAILURE_NONE ? "squeue is not there, or cannot be run"
                                              : "squeue has not answered in time");
    }
    while (out->length > 0 && out->data[out->length - 1] == '\n') {
        out->data[--out->length] = '\0';
    }
    return code == FAILURE_NONE && !answer.is_late && answer.status == 0;
}

bool job_endpoint_is_step(const char *word) {
    size_t job = strspn(word, "0123456789");
    const char *step = word + job;
    return job > 0 && job < 20 &&
           (*step == '\0' || (*step == '.' && strlen(step) > 1 && strlen(step) < 20 &&
                                 strspn(step + 1, "0123456789") == strlen(step + 1)));
}

/* Of the lines that squeue prints that of the step that is asked for; steps without a number are
 * Slurm's own. Returns how many there are. */
static size_t find_step(char *lines, const char *wanted, char **out_step, char **out_nodes) {
    size_t count = 0;
    char *rest = NULL;
    size_t length = strlen(wanted);
    for (char *line = strtok_r(lines, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        char *nodes = strchr(line, ' ');
        if (nodes == NULL) {
            continue;
        }
        *nodes++ = '\0';
        bool is_wanted = strncmp(line, wanted, length) == 0 &&
                         (line[length] == '\0' || line[length] == '.') &&
                         job_endpoint_is_step(line) && strchr(line, '.') != NULL;
        if (is_wanted) {
            *out_step = line;
            *out_nodes = nodes;
            count++;
        }
    }
    return count;
}

/* As the variables of a task of the step have it. */
static bool describe_step(
    const char *step, const char *nodes, struct text_list *environment, size_t *out_count) {
    struct text_list hosts = {0};
    bool is_well = hostlist_expand(nodes, &hosts) == FAILURE_NONE;
    char *job = text_format("%.*s", (int)strcspn(step, "."), step);
    char *count = text_format("%zu", hosts.count);
    char *tasks = text_format("1(x%zu)", hosts.count);
    text_list_set_variable(environment, "SLURM_JOB_ID", job);
    text_list_set_variable(environment, "SLURM_STEP_ID", strchr(step, '.') + 1);
    text_list_set_variable(environment, "SLURM_STEP_NODELIST", nodes);
    text_list_set_variable(environment, "SLURM_STEP_NUM_NODES", count);
    text_list_set_variable(environment, "SLURM_STEP_TASKS_PER_NODE", tasks);
    *out_count = hosts.count;
    free(job);
    free(count);
    free(tasks);
    text_list_clear(&hosts);
    return is_well;
}

static int say(const char *program, int status, char *words_taken) {
    utf8_make_line_printable(words_taken);
    fprintf(stderr, "%s: error: %s\n", program, words_taken);
    free(words_taken);
    return status;
}

/* EXIT_SUCCESS: the environment is that of a task of the step. */
static int take_step(const char *program, const char *wanted, struct duration patience,
    struct text_list *environment) {
    struct text answer = {0};
    char *step = NULL;
    char *nodes = NULL;
    size_t count = 0;
    char *job = text_format("--jobs=%.*s", (int)strcspn(wanted, "."), wanted);
    bool is_told = ask_slurm(job, patience, &answer);
    size_t steps = is_told && answer.length > 0 ? find_step(answer.data, wanted, &step, &nodes) : 0;
    int code = EXIT_SUCCESS;
    if (!is_told) {
        code = say(program, EXIT_FAILURE,
            text_format("Slurm does not say where job %s runs: %s", wanted, text_string(&answer)));
    } else if (steps == 0) {
        code = say(program, EXIT_FAILURE,
            text_format("job %s has no step that runs (squeue --steps --jobs=%s)", wanted, wanted));
    } else if (steps > 1) {
        code = say(program, EXIT_STATUS_USAGE,
            text_format("job %s has %zu steps; write which one is meant, as --slurm-job %s", wanted,
                steps, step));
    } else if (!describe_step(step, nodes, environment, &count) || count < 2) {
        code = say(program, EXIT_FAILURE,
            text_format("step %s runs on %s alone; ask there: srun --overlap --jobid %.*s %s", step,
                nodes, (int)strcspn(step, "."), step, program));
    }
    free(job);
    text_clear(&answer);
    return code;
}

/* The endpoint. */

static void add(struct text_list *arguments, const char *name, const struct option_result *options,
    const char *destination) {
    const char *text = option_result_text(options, destination);
    if (*text != '\0') {
        text_list_add(arguments, name);
        text_list_add(arguments, text);
    }
}

/* Without an endpoint the environment is that of a step of Slurm's, which says where it is. */
static bool read_options(const char *program, const struct option_result *options,
    bool has_endpoint, const struct text_list *environment, struct launch_options *out_options) {
    struct text_list arguments = {0};
    if (has_endpoint) {
        add(&arguments, "--rdzv-endpoint", options, "rdzv_endpoint");
        add(&arguments, "--rdzv-backend", options, "rdzv_backend");
        add(&arguments, "--rdzv-id", options, "rdzv_id");
    }
    add(&arguments, "--rdzv-conf", options, "rdzv_conf");
    add(&arguments, "--token-file", options, "token_file");
    add(&arguments, "--auth", options, "auth");
    if (has_endpoint) {
        text_list_add(&arguments, "--nnodes=2");
    }
    text_list_add(&arguments, "script.py");
    launch_options_parse(program, &arguments, environment, out_options);
    text_list_clear(&arguments);
    if (out_options->outcome != OPTION_OUTCOME_VALUES) {
        const char *error = strstr(out_options->text, "error: ");
        char *line = text_format("%s", error != NULL ? error : out_options->text);
        utf8_make_string_printable(line);
        fprintf(stderr, "%s: %s", program, line);
        free(line);
        return false;
    }
    return true;
}

int job_endpoint_open(const char *program, const struct option_result *options,
    const struct text_list *environment, struct job_endpoint *out_endpoint) {
    struct failure failure = {0};
    struct duration timeout =
        duration_from_seconds(option_result_value(options, "timeout")->number);
    const char *slurm_job = option_result_value(options, "slurm_job")->text;
    bool has_endpoint = *option_result_text(options, "rdzv_endpoint") != '\0';
    struct text_list of_step = {0};
    if (!has_endpoint && slurm_job == NULL) {
        return EXIT_SUCCESS;
    }
    text_list_add_all(&of_step, environment);
    int code = has_endpoint ? EXIT_SUCCESS : take_step(program, slurm_job, timeout, &of_step);
    if (code == EXIT_SUCCESS &&
        !read_options(program, options, has_endpoint, &of_step, &out_endpoint->options)) {
        code = EXIT_STATUS_USAGE;
    }
    text_list_clear(&of_step);
    if (code != EXIT_SUCCESS) {
        return code;
    }
    if (job_host_open(&out_endpoint->options.config, timeout, &out_endpoint->host, &failure) !=
        FAILURE_NONE) {
        fprintf(stderr, "%s: error: %s\n", program, failure.message);
        return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}

/* Accepts one that is none. */
static void job_endpoint_clear(struct job_endpoint *endpoint) {
    job_host_free(endpoint->host);
    launch_options_clear(&endpoint->options);
    *endpoint = (struct job_endpoint){0};
}

/* Job inquiry. */

void job_inquiry_drop_entries(struct inquiry *inquiry) {
    for (size_t i = 0; i < inquiry->count; i++) {
        chronicle_entry_clear(&inquiry->entries[i].entry);
    }
    inquiry->count = 0;
}

void job_inquiry_begin_again(struct inquiry *inquiry) {
    job_inquiry_drop_entries(inquiry);
    for (size_t i = 0; i < inquiry->agents.count; i++) {
        inquiry->seqs[i] = 0;
    }
    inquiry->host_seq = 0;
    inquiry->is_of_host = false;
}

void job_inquiry_clear(struct inquiry *inquiry) {
    job_inquiry_drop_entries(inquiry);
    status_seen_clear(&inquiry->seen);
    job_endpoint_clear(&inquiry->endpoint);
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

/* Of a step its job counts. */
static bool is_of_slurm_job(const struct job_announcement *agent, const char *slurm_job) {
    const char *own = agent->facts[JOB_FACT_SLURM_JOB];
    size_t length = slurm_job != NULL ? strcspn(slurm_job, ".") : 0;
    bool is_of_job = own != NULL && strlen(own) == length && strncmp(own, slurm_job, length) == 0;
    return slurm_job == NULL ||
           (is_of_job && (slurm_job[length] == '\0' || text_equals(agent->run_id, slurm_job)));
}

/* Keeps the agents of the job of that name; NULL: of the one that there is. */
static void keep_wanted(struct job_list *agents, const char *wanted, const char *slurm_job) {
    size_t kept = 0;
    for (size_t i = 0; i < agents->count; i++) {
        if ((wanted == NULL || text_equals(agents->items[i].run_id, wanted)) &&
            is_of_slurm_job(&agents->items[i], slurm_job)) {
            agents->items[kept++] = agents->items[i];
        } else {
            job_announcement_clear(&agents->items[i]);
        }
    }
    agents->count = kept;
}

bool job_inquiry_has_agent(const char *slurm_job, const struct text_list *environment) {
    struct text_list places = {0};
    struct text_list refusals = {0};
    struct job_list agents = {0};
    job_directory_places(environment, &places);
    job_directory_find_agents(&places, &agents, &refusals);
    keep_wanted(&agents, NULL, slurm_job);
    bool is_there = agents.count > 0;
    job_list_clear(&agents);
    text_list_clear(&places);
    text_list_clear(&refusals);
    return is_there;
}

int job_inquiry_find(struct inquiry *inquiry, const char *wanted, const char *slurm_job,
    const struct text_list *environment) {
    struct text_list places = {0};
    struct text_list refusals = {0};
    int status = EXIT_SUCCESS;
    job_directory_places(environment, &places);
    job_directory_find_agents(&places, &inquiry->agents, &refusals);
    for (size_t i = 0; i < refusals.count; i++) {
        fprintf(
            stderr, "%s: not looking for jobs there: %s\n", inquiry->program, refusals.items[i]);
    }
    keep_wanted(&inquiry->agents, wanted, slurm_job);
    if (inquiry->agents.count == 0) {
        status = say_none(inquiry->program, wanted != NULL ? wanted : slurm_job, &places);
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
    int64_t last; /* the number that its last entry will have; 0: not said */
};

/* The number of an entry that a later version tells. */
static int64_t seq_of(struct slice line) {
    static const char name[] = "\"seq\":"; /* as agents write it */
    const uint8_t *found = memmem(line.data, line.length, name, sizeof name - 1);
    int64_t seq = 0;
    char digits[20] = "";
    if (found != NULL) {
        struct slice rest = slice_from(line, (size_t)(found - line.data) + sizeof name - 1);
        snprintf(digits, sizeof digits, "%.*s", (int)rest.length, (const char *)rest.data);
        digits[strspn(digits, "0123456789")] = '\0';
    }
    return text_parse_integer(digits, &seq) == FAILURE_NONE ? seq : 0;
}

static void take_head(struct hearing *hearing, struct slice line) {
    static const char found[] = "HTTP/1.1 200 ";
    static const char last[] = "Muster-Last: ";
    hearing->is_found |= line.length >= sizeof found - 1 && !hearing->is_answered &&
                         memcmp(line.data, found, sizeof found - 1) == 0;
    hearing->is_answered = true;
    hearing->is_body = line.length == 0 || (line.length == 1 && line.data[0] == '\r');
    if (line.length >= sizeof last && memcmp(line.data, last, sizeof last - 1) == 0) {
        char *number = text_format("%.*s", (int)(line.length - sizeof last),
            (const char *)line.data + sizeof last - 1); /* without the \r */
        (void)!text_parse_integer(number, &hearing->last);
        free(number);
    }
}

static void take_line(void *context, struct slice line) {
    struct hearing *hearing = context;
    if (!hearing->is_body) {
        take_head(hearing, line);
    } else if (hearing->is_found) {
        hearing->take(hearing->context, line);
    }
}

static enum failure_code ask_agent(const struct inquiry *inquiry, size_t agent, const char *path,
    struct hearing *hearing, struct failure *failure) {
    char *question = text_format("GET %s HTTP/1.1\r\nHost: muster\r\n\r\n", path);
    enum failure_code code =
        snapshot_socket_read(inquiry->agents.items[agent].facts[JOB_FACT_SOCKET], question,
            inquiry->patience, take_line, hearing, failure);
    free(question);
    return code == FAILURE_NONE && !hearing->is_found
               ? failure_set(failure, FAILURE_MALFORMED, "the agent has no answer")
               : code;
}

enum failure_code job_inquiry_ask_one(const struct inquiry *inquiry, size_t agent, const char *path,
    void (*take)(void *context, struct slice line), void *context, struct failure *failure) {
    struct hearing hearing = {.take = take, .context = context};
    return ask_agent(inquiry, agent, path, &hearing, failure);
}

/* The entries of one agent. */
struct reading {
    struct inquiry *inquiry;
    size_t agent;
    bool is_followed; /* there may be any number */
    size_t count;
};

static void take_entry(void *context, struct slice line) {
    struct reading *reading = context;
    struct inquiry *inquiry = reading->inquiry;
    int64_t *last = &inquiry->seqs[reading->agent];
    struct chronicle_entry entry;
    if (reading->count++ >= CHRONICLE_ENTRIES_MAXIMUM && !reading->is_followed) {
        return;
    }
    if (chronicle_json_read_entry(line, &entry) != FAILURE_NONE) {
        int64_t seq = seq_of(line); /* what a later version tells is not known here */
        *last = seq > *last ? seq : *last;
        return;
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

void job_inquiry_sort(struct inquiry *inquiry) {
    if (inquiry->count > 1) {
        qsort(inquiry->entries, inquiry->count, sizeof *inquiry->entries, compare_entries);
    }
}

bool job_inquiry_ask(struct inquiry *inquiry, struct failure *failure) {
    bool has_answer = false;
    for (size_t i = 0; i < inquiry->agents.count; i++) {
        struct reading reading = {.inquiry = inquiry, .agent = i};
        struct hearing hearing = {.take = take_entry, .context = &reading};
        char *path = text_format("/v1/events?after=%" PRId64, inquiry->seqs[i]);
        inquiry->answers[i] = ask_agent(inquiry, i, path, &hearing, failure) == FAILURE_NONE;
        free(path);
        if (inquiry->answers[i] && inquiry->seqs[i] < hearing.last) {
            fprintf(stderr,
                "%s: the agent of %s has ended while it answered; the file events.jsonl beside its "
                "logs has the rest\n",
                inquiry->program, shown(inquiry->agents.items[i].facts[JOB_FACT_NODE]));
        }
        has_answer = has_answer || inquiry->answers[i];
    }
    job_inquiry_sort(inquiry);
    return has_answer;
}

struct whole_answer {
    struct bytes *bytes;
    bool is_cut;
};

static void take_whole(void *context, struct slice line) {
    struct whole_answer *answer = context;
    answer->is_cut = answer->is_cut ||
                     bytes_append(answer->bytes, line.data, line.length) != FAILURE_NONE ||
                     bytes_append(answer->bytes, "\n", 1) != FAILURE_NONE;
}

/* Through the first agent that gets an answer. */
static enum failure_code ask_through_agents(struct inquiry *inquiry, enum job_question_kind kind,
    struct bytes *answer, struct failure *failure) {
    enum failure_code code = FAILURE_MISSING;
    char *path = kind == JOB_QUESTION_EVENTS
                     ? text_format("/v1/job/events?after=%" PRId64, inquiry->host_seq)
                     : memory_duplicate_string("/v1/job/status?nodes=1");
    for (size_t i = 0; i < inquiry->agents.count && code != FAILURE_NONE; i++) {
        struct whole_answer whole = {.bytes = answer};
        bytes_consume(answer, answer->length);
        code = job_inquiry_ask_one(inquiry, i, path, take_whole, &whole, failure);
        if (code == FAILURE_NONE && whole.is_cut) {
            code = failure_set(failure, FAILURE_LIMIT, "the answer is too long");
        }
    }
    free(path);
    return code;
}

static enum failure_code ask_host(struct inquiry *inquiry, enum job_question_kind kind,
    struct bytes *answer, struct failure *failure) {
    bytes_init(answer, JOB_HOST_ANSWER_MAXIMUM);
    return inquiry->endpoint.host != NULL
               ? job_host_ask(inquiry->endpoint.host, kind, inquiry->host_seq, answer, failure)
               : ask_through_agents(inquiry, kind, answer, failure);
}

enum failure_code job_inquiry_ask_host(
    struct inquiry *inquiry, struct chronicle_status *out_status, struct failure *failure) {
    struct bytes answer = {0};
    enum failure_code code = ask_host(inquiry, JOB_QUESTION_NODES, &answer, failure);
    if (code == FAILURE_NONE) {
        status_seen_clear(&inquiry->seen);
        code = status_json_read(bytes_slice(&answer), out_status, &inquiry->seen);
        inquiry->is_of_host = code == FAILURE_NONE;
        if (code != FAILURE_NONE) {
            (void)failure_set(failure, code, "the answer of the job's host makes no sense");
        }
    }
    bytes_clear(&answer);
    return code;
}

enum failure_code job_inquiry_ask_host_for_events(
    struct inquiry *inquiry, struct failure *failure) {
    struct bytes answer = {0};
    enum failure_code code = ask_host(inquiry, JOB_QUESTION_EVENTS, &answer, failure);
    struct slice rest = bytes_slice(&answer);
    const uint8_t *end;
    size_t before = inquiry->count;
    while (code == FAILURE_NONE && rest.length > 0 &&
           (end = memchr(rest.data, '\n', rest.length)) != NULL) {
        struct slice line = {rest.data, (size_t)(end - rest.data)};
        struct chronicle_entry entry;
        if (chronicle_json_read_entry(line, &entry) == FAILURE_NONE) {
            inquiry->entries = memory_reserve(
                inquiry->entries, &inquiry->capacity, inquiry->count + 1, sizeof *inquiry->entries);
            inquiry->entries[inquiry->count++] = (struct told_entry){entry, 0};
            inquiry->host_seq = entry.seq;
        }
        rest = slice_from(rest, line.length + 1);
    }
    if (inquiry->count > before + 1) {
        qsort(inquiry->entries + before, inquiry->count - before, sizeof *inquiry->entries,
            compare_entries);
    }
    bytes_clear(&answer);
    return code;
}

/* Following. */

static void follow_one(struct pollfd *watched, struct hearing *hearing, struct bytes *come) {
    int error;
    if (!snapshot_socket_take(watched->fd, come, take_line, hearing, &error)) {
        close(watched->fd);
        watched->fd = -1;
    }
}

/* The last one is the output: nobody reads there any more. */
static struct pollfd *open_followed(struct inquiry *inquiry, struct failure *failure) {
    size_t count = inquiry->agents.count;
    struct pollfd *watched = memory_allocate((count + 1) * sizeof *watched);
    for (size_t i = 0; i < count; i++) {
        char *question = text_format(
            "GET /v1/follow?after=%" PRId64 " HTTP/1.1\r\nHost: muster\r\n\r\n", inquiry->seqs[i]);
        watched[i] = (struct pollfd){.fd = -1, .events = POLLIN};
        inquiry->answers[i] =
            snapshot_socket_ask(inquiry->agents.items[i].facts[JOB_FACT_SOCKET], question,
                inquiry->patience, &watched[i].fd, failure) == FAILURE_NONE;
        free(question);
    }
    watched[count] = (struct pollfd){.fd = STDOUT_FILENO};
    return watched;
}

void job_inquiry_follow(
    struct inquiry *inquiry, bool (*take)(void *context, struct inquiry *inquiry), void *context) {
    size_t count = inquiry->agents.count;
    struct pollfd *watched = open_followed(inquiry, NULL);
    struct hearing *hearings = memory_allocate((count + 1) * sizeof *hearings);
    struct reading *readings = memory_allocate((count + 1) * sizeof *readings);
    struct bytes *come = memory_allocate((count + 1) * sizeof *come);
    bool goes_on = true;
    size_t left = 0;
    for (size_t i = 0; i < count; i++) {
        readings[i] = (struct reading){.inquiry = inquiry, .agent = i, .is_followed = true};
        hearings[i] = (struct hearing){.take = take_entry, .context = &readings[i]};
        bytes_init(&come[i], SNAPSHOT_ROOM);
        left += inquiry->answers[i] ? 1 : 0;
    }
    while (goes_on && left > 0 && poll(watched, count + 1, -1) > 0 && watched[count].revents == 0) {
        left = 0;
        for (size_t i = 0; i < count; i++) {
            if (watched[i].fd >= 0 && watched[i].revents != 0) {
                follow_one(&watched[i], &hearings[i], &come[i]);
            }
            left += watched[i].fd >= 0 ? 1 : 0;
        }
        job_inquiry_sort(inquiry);
        goes_on = inquiry->count == 0 || take(context, inquiry);
    }
    for (size_t i = 0; i < count; i++) {
        if (watched[i].fd >= 0) {
            close(watched[i].fd);
        }
        bytes_clear(&come[i]);
    }
    free(watched);
    free(hearings);
    free(readings);
    free(come);
}

void job_inquiry_read_rest(struct inquiry *inquiry) {
    char line[CHRONICLE_LINE_READ_MAXIMUM];
    for (size_t i = 0; i < inquiry->agents.count && !inquiry->is_of_host; i++) {
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
    job_inquiry_sort(inquiry);
}
