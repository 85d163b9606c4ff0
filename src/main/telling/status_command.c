/* SPDX-License-Identifier: BSD-3-Clause */
#include "main/telling/status_command.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "host/loop/clock.h"
#include "main/command.h"
#include "main/telling/job_inquiry.h"
#include "main/telling/status_text.h"
#include "options/argparse/option_parser.h"
#include "wire/telling/chronicle_json.h"

#define EXIT_NOT_RUNNING 3
#define EXIT_ENDED_BADLY 4
#define TIMEOUT_MAXIMUM_SECONDS 3600
/* How often the agents of this machine are asked, and the host of a job, while somebody looks. */
#define RENEW_SECONDS 1
#define RENEW_FAR_SECONDS 2
#define SINCE_MAXIMUM_SECONDS ((int64_t)10 * 366 * 86400)
/* Of a terminal that does not say how large it is. */
#define USUAL_ROWS 23
#define USUAL_COLUMNS 80

static int status_of(const struct chronicle_status *status) {
    if (status->state == JOB_ENDED) {
        return status->result == JOB_SUCCEEDED ? EXIT_SUCCESS : EXIT_ENDED_BADLY;
    }
    bool runs = status->state == JOB_RUNNING || status->state == JOB_TRAINING;
    return runs ? EXIT_SUCCESS : EXIT_NOT_RUNNING;
}

/* The commands. */

static const struct option_definition status_definitions[] = {
    OPTION_DEFINITION_HELP,
    {.destination = "watch",
        .names = {"--watch"},
        .kind = OPTION_FLAG,
        .help = "Go on, until the job is over: a terminal is renewed in place, elsewhere a line is "
                "printed when something has changed."},
    {.destination = "nodes",
        .names = {"--nodes"},
        .kind = OPTION_FLAG,
        .help = "The nodes one by one. Without this, those that stand equally are one line where "
                "there are more than 24, and --json has groups only."},
    {.destination = "ranks",
        .names = {"--ranks"},
        .kind = OPTION_FLAG,
        .help = "The workers one by one."},
    {.destination = "node",
        .names = {"--node"},
        .help = "Only this node, with all its recoveries."},
    {.destination = "rank",
        .names = {"--rank"},
        .kind = OPTION_INTEGER,
        .help = "Only this worker, with all recoveries that it was the cause of."},
    {.destination = "json",
        .names = {"--json"},
        .kind = OPTION_FLAG,
        .help = "Print one JSON object (muster.status/1)."},
    JOB_ENDPOINT_OPTION_DEFINITIONS,
    {.destination = "job",
        .arity = OPTION_ARITY_OPTIONAL,
        .help = "The job's --rdzv-id, where several jobs run here."},
};

static const struct option_table status_table = {
    .description =
        "Show how a job stands that has an agent on this machine: its state, its nodes, its last "
        "recovery, and where the time went, as the agents here know it. Exit status: 0 it runs, or "
        "has succeeded; 3 it does not run now; 4 it has ended badly; 1 nobody could be asked; 2 "
        "several jobs run here.",
    .definitions = status_definitions,
    .definition_count = sizeof status_definitions / sizeof *status_definitions,
};

/* Whether the entries are of all nodes of the world. */
static bool is_whole(const struct inquiry *inquiry, const struct chronicle_status *status) {
    size_t answers = 0;
    for (size_t i = 0; i < inquiry->agents.count; i++) {
        answers += inquiry->answers[i] ? 1 : 0;
    }
    return status->node_count > 0 && answers >= (size_t)status->node_count;
}

static void fold(const struct inquiry *inquiry, struct chronicle_status *out_status) {
    *out_status = (struct chronicle_status){0};
    for (size_t i = 0; i < inquiry->count; i++) {
        chronicle_status_take(out_status, &inquiry->entries[i].entry);
    }
    chronicle_status_advance(out_status, clock_wall_time());
}

bool status_command_open(struct inquiry *inquiry, struct option_result *result, const char *job,
    const struct text_list *environment, int *out_status) {
    struct failure failure = {0};
    double seconds = option_result_value(result, "timeout")->number;
    if (!(seconds > 0 && seconds <= TIMEOUT_MAXIMUM_SECONDS)) {
        option_result_reject(result, "timeout", "must be above 0, and at most %d (seconds): '%s'",
            TIMEOUT_MAXIMUM_SECONDS, option_result_text(result, "timeout"));
        *out_status = command_print(result);
        return false;
    }
    inquiry->patience = (struct duration){(int64_t)(seconds * (double)NANOSECONDS_PER_SECOND)};
    const char *slurm_job = option_result_value(result, "slurm_job")->text;
    if (slurm_job != NULL && !job_endpoint_is_step(slurm_job)) {
        option_result_reject(result, "slurm_job",
            "expected the number of a job of Slurm's, or of a step, as 4711 or 4711.0: '%s'",
            slurm_job);
        *out_status = command_print(result);
        return false;
    }
    if (slurm_job == NULL || !job_inquiry_has_agent(slurm_job, environment)) {
        *out_status = job_endpoint_open(inquiry->program, result, environment, &inquiry->endpoint);
        if (*out_status != EXIT_SUCCESS || inquiry->endpoint.host != NULL) {
            return *out_status == EXIT_SUCCESS;
        }
    }
    *out_status = job_inquiry_find(inquiry, job, slurm_job, environment);
    if (*out_status == EXIT_SUCCESS && !job_inquiry_ask(inquiry, &failure)) {
        fprintf(stderr, "%s: error: no agent of the job answers: %s\n", inquiry->program,
            failure.message);
        *out_status = EXIT_FAILURE;
    }
    return *out_status == EXIT_SUCCESS;
}

static bool begin(struct inquiry *inquiry, const struct option_table *table,
    const struct text_list *arguments, const struct text_list *environment,
    struct option_result *result, int *out_status) {
    option_parse(table, inquiry->program, arguments, environment, result);
    if (result->outcome != OPTION_OUTCOME_VALUES) {
        *out_status = command_print(result);
        return false;
    }
    return status_command_open(
        inquiry, result, option_result_value(result, "job")->text, environment, out_status);
}

/* What the agents here know where they are all, else what the host of the job's store does; where
 * none can be asked, what the agents here know. False: the failure says why. */
bool status_command_find(
    struct inquiry *inquiry, struct chronicle_status *out_status, struct failure *failure) {
    struct chronicle_status whole;
    if (inquiry->endpoint.host != NULL) {
        return job_inquiry_ask_host(inquiry, out_status, failure) == FAILURE_NONE;
    }
    inquiry->is_of_host = false;
    fold(inquiry, out_status);
    if (!is_whole(inquiry, out_status) &&
        job_inquiry_ask_host(inquiry, &whole, failure) == FAILURE_NONE) {
        chronicle_status_clear(out_status);
        *out_status = whole;
    }
    return true;
}

static bool has_colours(const struct text_list *environment) {
    const char *refused = text_list_variable(environment, "NO_COLOR");
    const char *terminal = text_list_variable(environment, "TERM");
    return isatty(STDOUT_FILENO) == 1 && (refused == NULL || *refused == '\0') &&
           !text_equals(terminal, "dumb");
}

static struct status_shown find_shown(
    const struct option_result *result, const struct text_list *environment) {
    const struct option_value *rank = option_result_value(result, "rank");
    return (struct status_shown){.has_nodes = option_result_value(result, "nodes")->flag,
        .has_ranks = option_result_value(result, "ranks")->flag,
        .has_colour = has_colours(environment),
        .node = option_result_value(result, "node")->text,
        .rank = rank->is_set ? rank->integer : -1};
}

/* False: what is wanted is not there, which has been said. */
static bool render(const struct inquiry *inquiry, const struct option_result *result,
    const struct status_shown *shown, const struct chronicle_status *status, struct text *out) {
    if (option_result_value(result, "json")->flag) {
        status_text_append_json(inquiry, status, shown->has_nodes, out);
        return true;
    }
    if (status_text_append(inquiry, shown, status, out)) {
        return true;
    }
    if (shown->node != NULL) {
        fprintf(stderr, "%s: error: the job has no node '%s'; `%s` names them\n", inquiry->program,
            shown->node, inquiry->program);
    } else {
        fprintf(stderr,
            "%s: error: no node of the job has rank %" PRId64 "; there are %d workers\n",
            inquiry->program, shown->rank, status->worker_count);
    }
    return false;
}

static int show_status(
    struct inquiry *inquiry, const struct option_result *result, const struct status_shown *shown) {
    struct chronicle_status status = {0};
    struct failure failure = {0};
    struct text out = {0};
    if (!status_command_find(inquiry, &status, &failure)) {
        fprintf(stderr, "%s: error: %s\n", inquiry->program, failure.message);
        return EXIT_FAILURE;
    }
    int code = EXIT_STATUS_USAGE;
    if (render(inquiry, result, shown, &status, &out)) {
        fputs(text_string(&out), stdout);
        code = fflush(stdout) == 0 ? status_of(&status) : EXIT_FAILURE;
    }
    text_clear(&out);
    chronicle_status_clear(&status);
    return code;
}

/* Watching. */

struct watch {
    struct inquiry *inquiry;
    const struct option_result *result;
    struct status_shown shown;
    bool is_terminal;
    int rows_drawn;
    struct text told; /* what has changed since is told */
    struct instant answered;
};

/* Above what was drawn last, and cut to what the terminal has now. */
static void draw(struct watch *watch, const char *text) {
    struct winsize size = {0};
    struct text fit = {0};
    (void)ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
    int rows = size.ws_row > 1 ? size.ws_row - 1 : USUAL_ROWS;
    status_text_fit(text, size.ws_col > 0 ? size.ws_col : USUAL_COLUMNS, rows, &fit);
    if (watch->rows_drawn > 0) {
        printf("\x1b[%dA\r\x1b[J", watch->rows_drawn < rows ? watch->rows_drawn : rows);
    }
    fputs(text_string(&fit), stdout);
    watch->rows_drawn = 0;
    for (const char *at = text_string(&fit); (at = strchr(at, '\n')) != NULL; at++) {
        watch->rows_drawn++;
    }
    text_clear(&fit);
}

/* What stands still while nothing happens. */
static void append_gist(const struct chronicle_status *status, struct text *out) {
    text_append_format(out, "%d %d %" PRId64 " %d %d %d %zu", (int)status->state,
        (int)status->result, status->round, status->node_count, status->here, status->restarts,
        status->recovery_count + status->recoveries_before);
    for (size_t i = 0; i < status->known_nodes; i++) {
        text_append_format(out, " %d", (int)status->nodes[i].state);
    }
}

static void tell_change(
    struct watch *watch, const struct chronicle_status *status, const char *text) {
    struct text gist = {0};
    append_gist(status, &gist);
    if (!text_equals(text_string(&gist), text_string(&watch->told))) {
        bool is_json = option_result_value(watch->result, "json")->flag;
        printf("%.*s\n", (int)(is_json ? strlen(text) - 1 : strcspn(text, "\n")), text);
    }
    text_clear(&watch->told);
    watch->told = gist;
}

/* EXIT_SUCCESS: go on. */
static int show_now(struct watch *watch, struct chronicle_status *status) {
    struct text out = {0};
    bool is_there = render(watch->inquiry, watch->result, &watch->shown, status, &out);
    if (is_there && watch->is_terminal) {
        draw(watch, text_string(&out));
    } else if (is_there) {
        tell_change(watch, status, text_string(&out));
    }
    text_clear(&out);
    return !is_there ? EXIT_STATUS_USAGE : fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* Whoever has answered once may be silent for as long as the patience goes: the host of the job may
 * be another one soon. */
static bool is_silent_too_long(const struct watch *watch) {
    return instant_until(watch->answered, clock_now()).nanoseconds >
           watch->inquiry->patience.nanoseconds;
}

/* The agents of this machine, where they are asked, are gone: their files say how it ended. */
static bool ask_again(struct watch *watch, bool *out_is_over) {
    struct inquiry *inquiry = watch->inquiry;
    *out_is_over = false;
    if (inquiry->endpoint.host == NULL && !job_inquiry_ask(inquiry, NULL)) {
        job_inquiry_read_rest(inquiry);
        inquiry->is_of_host = false;
        *out_is_over = true;
    }
    return !*out_is_over;
}

static int watch_status(struct watch *watch) {
    struct inquiry *inquiry = watch->inquiry;
    struct failure failure = {0};
    int code = EXIT_SUCCESS;
    bool is_over = false;
    while (code == EXIT_SUCCESS) {
        struct chronicle_status status = {0};
        bool has_answer = true;
        if (is_over) {
            fold(inquiry, &status);
        } else {
            has_answer = status_command_find(inquiry, &status, &failure);
        }
        if (has_answer) {
            watch->answered = clock_now();
            code = show_now(watch, &status);
            is_over = is_over || status.state == JOB_ENDED;
        } else if (is_silent_too_long(watch)) {
            fprintf(stderr, "%s: error: %s\n", inquiry->program, failure.message);
            code = EXIT_FAILURE;
        }
        if (code == EXIT_SUCCESS && is_over) {
            code = status_of(&status);
            chronicle_status_clear(&status);
            break;
        }
        chronicle_status_clear(&status);
        if (code == EXIT_SUCCESS) {
            sleep(inquiry->endpoint.host != NULL ? RENEW_FAR_SECONDS : RENEW_SECONDS);
            (void)ask_again(watch, &is_over);
        }
    }
    return code;
}

int status_command(const struct text_list *arguments, const struct text_list *environment) {
    struct inquiry inquiry = {.program = "muster status"};
    struct option_result result;
    int code;
    if (begin(&inquiry, &status_table, arguments, environment, &result, &code)) {
        struct watch watch = {.inquiry = &inquiry,
            .result = &result,
            .shown = find_shown(&result, environment),
            .is_terminal =
                isatty(STDOUT_FILENO) == 1 && !option_result_value(&result, "json")->flag};
        code = option_result_value(&result, "watch")->flag
                   ? watch_status(&watch)
                   : show_status(&inquiry, &result, &watch.shown);
        text_clear(&watch.told);
    }
    option_result_clear(&result);
    job_inquiry_clear(&inquiry);
    return code;
}

/* Events. */

static const struct option_definition events_definitions[] = {
    OPTION_DEFINITION_HELP,
    {.destination = "follow",
        .names = {"--follow"},
        .kind = OPTION_FLAG,
        .help = "Go on with what happens from now on, until the job has no agent here any more."},
    {.destination = "json",
        .names = {"--json"},
        .kind = OPTION_FLAG,
        .help = "Print each as one JSON object (muster.event/1)."},
    {.destination = "kind",
        .names = {"--kind"},
        .kind = OPTION_COMMA_LIST,
        .is_repeatable = true,
        .help = "Only this kind, as worker_failed. More may follow, each with --kind or after a "
                "comma."},
    {.destination = "node", .names = {"--node"}, .help = "Only those of this node."},
    {.destination = "since",
        .names = {"--since"},
        .help = "Only those after this number (\"seq\" in --json), or not older than a time as "
                "90s, 10m, 2h or 1d."},
    JOB_ENDPOINT_OPTION_DEFINITIONS,
    {.destination = "job",
        .arity = OPTION_ARITY_OPTIONAL,
        .help = "The job's --rdzv-id, where several jobs run here."},
};

static const struct option_table events_table = {
    .description =
        "Show what has happened to a job that has an agent on this machine, as the agents here "
        "know it: of each the last 1,024 entries. The files events.jsonl beside the logs have "
        "all.",
    .definitions = events_definitions,
    .definition_count = sizeof events_definitions / sizeof *events_definitions,
};

/* From when on they are shown: of the two one is set at most. */
struct since {
    int64_t seq;
    struct wall_time time;
};

/* False: it has been rejected. */
static bool find_since(struct option_result *result, struct since *out_since) {
    static const struct {
        const char *unit;
        int64_t seconds;
    } units[] = {{"s", 1}, {"m", 60}, {"h", 3600}, {"d", 86400}};
    const char *text = option_result_value(result, "since")->text;
    *out_since = (struct since){.seq = INT64_MIN};
    size_t length = text != NULL ? strspn(text, "0123456789") : 0;
    int64_t number = 0;
    char *digits = text_format("%.*s", (int)length, text != NULL ? text : "");
    bool is_number = length > 0 && text_parse_integer(digits, &number) == FAILURE_NONE;
    bool is_known = text == NULL || (is_number && text[length] == '\0');
    free(digits);
    if (text != NULL && is_known) {
        out_since->seq = number;
    }
    for (size_t i = 0; is_number && i < sizeof units / sizeof *units; i++) {
        if (text_equals(text + length, units[i].unit) &&
            number <= SINCE_MAXIMUM_SECONDS / units[i].seconds) {
            out_since->time.nanoseconds =
                clock_wall_time().nanoseconds - number * units[i].seconds * NANOSECONDS_PER_SECOND;
            is_known = true;
        }
    }
    if (!is_known) {
        option_result_reject(result, "since",
            "expected a number of an entry, or a time as 90s, 10m, 2h or 1d: '%s'", text);
    }
    return is_known;
}

static bool is_wanted(const struct chronicle_entry *entry, const struct option_result *result,
    const struct since *since) {
    const char *node = option_result_value(result, "node")->text;
    const struct option_value *kinds = option_result_value(result, "kind");
    bool is_kind = !kinds->is_set || kinds->list.count == 0;
    for (size_t i = 0; i < kinds->list.count && !is_kind; i++) {
        is_kind = text_equals(kinds->list.items[i], chronicle_kind_name(entry->kind));
    }
    return is_kind && (node == NULL || text_equals(node, entry->node)) && entry->seq > since->seq &&
           entry->time.nanoseconds >= since->time.nanoseconds;
}

struct showing {
    const struct option_result *result;
    struct since since;
};

static bool show_entries(void *context, struct inquiry *inquiry) {
    const struct showing *showing = context;
    const struct option_result *result = showing->result;
    struct text out = {0};
    for (size_t i = 0; i < inquiry->count; i++) {
        const struct chronicle_entry *entry = &inquiry->entries[i].entry;
        if (is_wanted(entry, result, &showing->since) &&
            option_result_value(result, "json")->flag) {
            chronicle_json_write_entry(entry, &out);
        } else if (is_wanted(entry, result, &showing->since)) {
            status_text_append_entry(entry, &out);
        }
    }
    job_inquiry_drop_entries(inquiry);
    fputs(text_string(&out), stdout);
    text_clear(&out);
    return fflush(stdout) == 0;
}

static bool check_kinds(struct option_result *result) {
    const struct option_value *kinds = option_result_value(result, "kind");
    for (size_t i = 0; i < kinds->list.count; i++) {
        if (chronicle_kind_from_name(kinds->list.items[i]) == CHRONICLE_KIND_COUNT) {
            option_result_reject(result, "kind", "unknown kind: '%s' (as worker_failed, node_lost)",
                kinds->list.items[i]);
            return false;
        }
    }
    return true;
}

/* As find_status. */
static bool ask_for_events(struct inquiry *inquiry, struct failure *failure) {
    struct chronicle_status status;
    if (inquiry->endpoint.host != NULL) {
        return job_inquiry_ask_host_for_events(inquiry, failure) == FAILURE_NONE;
    }
    fold(inquiry, &status);
    bool is_missing = !is_whole(inquiry, &status);
    chronicle_status_clear(&status);
    size_t count = inquiry->count;
    if (is_missing && job_inquiry_ask_host_for_events(inquiry, failure) == FAILURE_NONE) {
        inquiry->is_of_host = true;
        for (size_t i = 0; i < count; i++) { /* the host tells them, too */
            chronicle_entry_clear(&inquiry->entries[i].entry);
        }
        inquiry->count -= count;
        for (size_t i = 0; i < inquiry->count; i++) {
            inquiry->entries[i] = inquiry->entries[i + count];
        }
    }
    return true;
}

/* False: the output takes no more. */
static bool follow_host(struct inquiry *inquiry, struct showing *showing) {
    struct failure failure;
    struct instant answered = clock_now();
    bool is_written = true;
    while (is_written &&
           instant_until(answered, clock_now()).nanoseconds < inquiry->patience.nanoseconds) {
        sleep(RENEW_FAR_SECONDS);
        if (job_inquiry_ask_host_for_events(inquiry, &failure) == FAILURE_NONE) {
            answered = clock_now();
            is_written = show_entries(showing, inquiry);
        }
    }
    return is_written;
}

static int show_events(struct inquiry *inquiry, struct showing *showing) {
    struct failure failure = {0};
    if (!ask_for_events(inquiry, &failure)) {
        fprintf(stderr, "%s: error: %s\n", inquiry->program, failure.message);
        return EXIT_FAILURE;
    }
    bool is_written = show_entries(showing, inquiry);
    if (is_written && option_result_value(showing->result, "follow")->flag) {
        if (inquiry->endpoint.host != NULL || inquiry->is_of_host) {
            is_written = follow_host(inquiry, showing);
        } else {
            job_inquiry_follow(inquiry, show_entries, showing);
            job_inquiry_read_rest(inquiry);
            is_written = show_entries(showing, inquiry);
        }
    }
    return is_written ? EXIT_SUCCESS : EXIT_FAILURE;
}

int events_command(const struct text_list *arguments, const struct text_list *environment) {
    struct inquiry inquiry = {.program = "muster events"};
    struct option_result result;
    int code;
    if (begin(&inquiry, &events_table, arguments, environment, &result, &code)) {
        struct showing showing = {.result = &result};
        code = check_kinds(&result) && find_since(&result, &showing.since)
                   ? show_events(&inquiry, &showing)
                   : command_print(&result);
    }
    option_result_clear(&result);
    job_inquiry_clear(&inquiry);
    return code;
}
