/* SPDX-License-Identifier: BSD-3-Clause */
#include "main/rendezvous/rendezvous_command.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/utf8.h"
#include "core/workers/signal_name.h"
#include "main/command.h"
#include "main/store/store_session.h"
#include "options/argparse/option_parser.h"
#include "options/launch/option_values.h"

/* The record of a rendezvous in words, for people. What others have written into it (addresses, the
 * reason) is made printable. */

static void write_time(double time, time_t now, struct text *out) {
    char date[32] = "";
    time_t seconds = (time_t)time;
    int64_t ahead = (int64_t)seconds - (int64_t)now;
    struct tm parts;
    if (gmtime_r(&seconds, &parts) != NULL) {
        strftime(date, sizeof date, "%Y-%m-%d %H:%M:%S UTC", &parts);
    }
    text_append_format(out, "%s (%s%" PRId64 " s%s)", date, ahead > 0 ? "in " : "",
        ahead > 0 ? ahead : -ahead, ahead > 0 ? "" : " ago");
}

static void write_printable(const char *text, struct text *out) {
    char *printable = text_format("%s", text);
    utf8_make_line_printable(printable);
    text_append(out, printable);
    free(printable);
}

static void write_node(const struct muster_rendezvous_node *node, time_t now, struct text *out) {
    write_printable(node->addr, out);
    text_append_format(out, ", process %" PRId64, node->pid);
    text_append(out, node->is_muster ? "" : ", torchrun's");
    if (node->last_heartbeat != 0) {
        text_append(out, ", last heartbeat ");
        write_time(node->last_heartbeat, now, out);
    }
    text_append(out, "\n");
}

static void write_reason(const struct muster_rendezvous_state *state, struct text *out) {
    if (state->reason[0] != '\0') {
        text_append(out, state->is_closed ? "closed because: " : "begun because: ");
        write_printable(state->reason, out);
        text_append(out, "\n");
    }
}

static void write_phase(const struct muster_rendezvous_state *state, time_t now, struct text *out) {
    text_append_format(out, "round %" PRId64 ": ", state->round);
    if (state->is_complete) {
        text_append(out, "complete, its participants have their ranks\n");
    } else if (state->deadline != 0) {
        text_append(out, "open, there are enough participants; more may come until ");
        write_time(state->deadline, now, out);
        text_append(out, "\n");
    } else {
        text_append(out, "open, more participants are waited for\n");
    }
    if (state->is_closed) {
        text_append(out, state->has_failed ? "closed after a failure: no node may join any more\n"
                                           : "closed: no node may join any more\n");
    }
    write_reason(state, out);
}

/* By rank; those without ranks in the order in which they came. */
static int compare(const void *left, const void *right) {
    const struct muster_rendezvous_node *one = *(const struct muster_rendezvous_node *const *)left;
    const struct muster_rendezvous_node *other =
        *(const struct muster_rendezvous_node *const *)right;
    if (one->rank != other->rank) {
        return one->rank < other->rank ? -1 : 1;
    }
    return one < other ? -1 : one > other;
}

static void write_participants(
    const struct muster_rendezvous_state *state, time_t now, struct text *out) {
    size_t count = 0;
    const struct muster_rendezvous_node **nodes =
        memory_allocate((state->node_count + 1) * sizeof *nodes);
    for (size_t i = 0; i < state->node_count; i++) {
        if (state->nodes[i].is_participant) {
            nodes[count++] = &state->nodes[i];
        }
    }
    qsort(nodes, count, sizeof *nodes, compare);
    text_append_format(out, "participants: %zu\n", count);
    for (size_t i = 0; i < count; i++) {
        text_append(out, "  ");
        if (state->is_complete) {
            text_append_format(out, "rank %" PRId64 ": ", nodes[i]->rank);
        }
        text_append(out, nodes[i]->is_done ? "(done) " : "");
        write_node(nodes[i], now, out);
    }
    free(nodes);
}

static void write_others(
    const struct muster_rendezvous_state *state, bool is_wait_list, time_t now, struct text *out) {
    size_t count = is_wait_list ? state->waiting_count : state->redundant_count;
    text_append_format(out, "%s: %zu\n",
        is_wait_list ? "wait list, for the next round" : "redundancy list, the spares", count);
    for (size_t i = 0; i < state->node_count; i++) {
        const struct muster_rendezvous_node *node = &state->nodes[i];
        if (is_wait_list ? node->is_waiting : node->is_redundant) {
            text_append(out, "  ");
            write_node(node, now, out);
        }
    }
}

/* What only Muster's nodes write and read; a record of torchrun's has none of it. */
static void write_marks(const struct muster_rendezvous_state *state, struct text *out) {
    if (state->restarts > 0) {
        text_append_format(out, "restarts used: %" PRId64 "\n", state->restarts);
    }
    if (state->next_restarts > state->restarts) {
        text_append_format(
            out, "restarts used, as the next round counts: %" PRId64 "\n", state->next_restarts);
    }
    if (state->wanted > 0) {
        text_append_format(
            out, "wanted: the round is complete with %" PRId64 " participants\n", state->wanted);
    }
    if (state->signal != 0) {
        const char *name = state->signal > 0 && state->signal < 65
                               ? signal_name_from_number((int)state->signal)
                               : NULL;
        text_append_format(out, "signal: a node was told to end by %s\n",
            name != NULL ? name : "a signal that this machine does not have");
    }
    if (state->is_draining) {
        text_append(
            out, "draining: the workers of a participant are done, so no node is admitted\n");
    }
    if (state->is_doubted) {
        text_append(out, "doubted: a participant doubts a failure, so all are asked to answer\n");
    }
    if (state->is_ranked) {
        text_append(
            out, "ranked: the host of the store tells each node the ranks of its workers\n");
    }
}

/* Appends lines. Times are told as they are in the record, by the clocks of its nodes, and as
 * seconds from `now`, which is this machine's. */
static void record_words_write(
    const struct muster_rendezvous_state *state, time_t now, struct text *out) {
    write_phase(state, now, out);
    write_participants(state, now, out);
    write_others(state, true, now, out);
    write_others(state, false, now, out);
    write_marks(state, out);
}

/* Show. */

/* The port that torchrun's c10d rendezvous takes where the endpoint says none. */
#define DEFAULT_PORT 29400

static const char program[] = "muster rendezvous show";

static const struct option_definition definitions[] = {
    OPTION_DEFINITION_HELP,
    {
        .destination = "rdzv_endpoint",
        .names = {"--rdzv-endpoint"},
        .help = "Where the job's store is, as its nodes were told. Without a port: 29400.",
    },
    {
        .destination = "rdzv_id",
        .names = {"--rdzv-id"},
        .help = "The job's name. Default: that of the one record that the store has.",
    },
    {
        .destination = "timeout",
        .names = {"--timeout"},
        .kind = OPTION_FLOAT,
        .default_text = "10",
        .help = "Seconds to wait for the store, and for each answer. Default: 10.",
    },
    {
        .destination = "token_file",
        .names = {"--token-file"},
        .help = "File with the job's token, which only this user may read (mode 0600).",
    },
};

static const struct option_table table = {
    .description =
        "Print the record by which the nodes of a job that come and go find each other: the round, "
        "the participants with their ranks, the nodes that wait, and what Muster notes. The job "
        "may be Muster's or torchrun's. Changes nothing.",
    .definitions = definitions,
    .definition_count = sizeof definitions / sizeof definitions[0],
};

/* The record is asked for on one connection. */
struct show {
    struct store_session *session;
    const char *run_id;
    int status;
};

__attribute__((format(printf, 2, 3))) static void fail(struct show *show, const char *format, ...) {
    va_list arguments;
    struct text message = {0};
    va_start(arguments, format);
    text_append_arguments(&message, format, arguments);
    va_end(arguments);
    char *line = text_take(&message);
    utf8_make_line_printable(line);
    fprintf(stderr, "%s: error: %s\n", program, line);
    free(line);
    show->status = EXIT_FAILURE;
}

/* Which records there are. */

/* The beginning of the keys of all records, as the store has them. What else lies below it has a
 * '/' behind. */
static void take_keys(void *context, const struct muster_store_result *result) {
    static const char beginning[] = "/" MUSTER_RENDEZVOUS_STATE_KEY;
    const size_t skipped = sizeof beginning - 1;
    struct text_list *ids = context;
    for (size_t i = 0; i < result->count; i++) {
        const struct muster_slice *key = &result->values[i];
        const char *data = key->data;
        if (key->length > skipped && memcmp(data, beginning, skipped) == 0 &&
            memchr(data + skipped, '/', key->length - skipped) == NULL &&
            memchr(data + skipped, '\0', key->length - skipped) == NULL) {
            char *id = text_format("%.*s", (int)(key->length - skipped), data + skipped);
            text_list_add(ids, id);
            free(id);
        }
    }
}

static bool list_ids(struct show *show, struct text_list *out_ids) {
    return store_session_ask(
        show->session, &(struct store_session_question){
                           .request = {.operation = MUSTER_STORE_LIST_KEYS, .is_raw = 1},
                           .take = take_keys,
                           .context = out_ids});
}

static int compare_ids(const void *left, const void *right) {
    return strcmp(*(char *const *)left, *(char *const *)right);
}

static void say_several(struct text_list *ids) {
    fprintf(stderr, "%s: error: the store has the records of %zu jobs; write which is meant:\n",
        program, ids->count);
    qsort(ids->items, ids->count, sizeof *ids->items, compare_ids);
    for (size_t i = 0; i < ids->count; i++) {
        utf8_make_line_printable(ids->items[i]);
        fprintf(stderr, "  --rdzv-id '%s'\n", ids->items[i]);
    }
}

static bool choose_id(struct show *show, struct text_list *ids) {
    if (show->run_id != NULL) {
        return true;
    }
    if (!list_ids(show, ids)) {
        show->status = EXIT_FAILURE;
    } else if (ids->count == 0) {
        fail(show,
            "the store has no record of a rendezvous (no key " MUSTER_RENDEZVOUS_STATE_KEY "ID)");
    } else if (ids->count > 1) {
        say_several(ids);
        show->status = EXIT_STATUS_USAGE;
    } else {
        show->run_id = ids->items[0];
    }
    return show->run_id != NULL;
}

/* The record. */

static void print_state(const struct show *show, const struct muster_rendezvous_state *state) {
    struct text words = {0};
    char *id = text_format("%s", show->run_id);
    utf8_make_line_printable(id);
    record_words_write(state, time(NULL), &words);
    printf("job '%s'\n%s", id, text_string(&words));
    free(id);
    text_clear(&words);
}

static void show_record(struct show *show, bool is_named) {
    struct muster_rendezvous_state *state = NULL;
    struct muster_failure failure;
    enum muster_error error = muster_rendezvous_state_get(
        store_session_store(show->session), show->run_id, &state, &failure);
    if (error == MUSTER_OK) {
        print_state(show, state);
    } else {
        fail(show, "%s%s", failure.message,
            error == MUSTER_ERROR_MISSING && is_named
                ? "; without --rdzv-id the records that it has are shown"
                : "");
    }
    muster_rendezvous_state_free(state);
}

static int show_at(const struct store_place *place, const struct option_result *options) {
    struct show show = {.run_id = option_result_value(options, "rdzv_id")->text};
    struct text_list ids = {0};
    show.session =
        store_session_new(program, place, option_result_value(options, "timeout")->number);
    if (show.session == NULL) {
        return EXIT_FAILURE;
    }
    bool is_named = show.run_id != NULL;
    if (choose_id(&show, &ids)) {
        show_record(&show, is_named);
    }
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fail(&show, "cannot write the answer");
    }
    store_session_free(show.session);
    text_list_clear(&ids);
    return show.status;
}

/* The command line. */

static void check(struct option_result *options, struct endpoint *out_endpoint) {
    struct text why = {0};
    const struct option_value *endpoint = option_result_value(options, "rdzv_endpoint");
    const struct option_value *id = option_result_value(options, "rdzv_id");
    if (!endpoint->is_set) {
        option_result_reject(options, "rdzv_endpoint", "is needed, to say where the store is");
    } else if (option_result_settle(options, "rdzv_endpoint",
                   endpoint_parse(endpoint->text, out_endpoint, &why), &why) == FAILURE_NONE) {
        if (out_endpoint->port == ENDPOINT_NO_PORT) {
            out_endpoint->port = DEFAULT_PORT;
        }
        if (out_endpoint->port == 0) {
            option_result_reject(options, "rdzv_endpoint", "port 0 is none that a store has");
        }
    }
    if (id->is_set && *id->text == '\0') {
        option_result_reject(options, "rdzv_id", "must not be empty");
    }
    if (option_result_value(options, "timeout")->number < 0) {
        option_result_reject(options, "timeout", "must not be negative");
    }
}

/* `muster rendezvous show`, with the arguments after "show". */
static int rendezvous_show(const struct text_list *arguments, const struct text_list *environment) {
    struct option_result options;
    struct endpoint endpoint = {0};
    option_parse(&table, program, arguments, environment, &options);
    if (options.outcome == OPTION_OUTCOME_VALUES) {
        check(&options, &endpoint);
    }
    int status;
    if (options.outcome == OPTION_OUTCOME_VALUES) {
        const struct store_place place = {.host = endpoint.host,
            .port = endpoint.port,
            .token_file = option_result_value(&options, "token_file")->text};
        status = show_at(&place, &options);
    } else {
        status = command_print(&options);
    }
    endpoint_clear(&endpoint);
    option_result_clear(&options);
    return status;
}

/* Command. */

static const char usage[] =
    "usage: muster rendezvous show --rdzv-endpoint HOST[:PORT] [--rdzv-id ID] [OPTION]...\n"
    "\n"
    "`show` prints the record by which the nodes of a job find each other (torchrun's, too): the\n"
    "round, who takes part with which rank, who waits. `muster rendezvous show --help` tells "
    "more.\n";

static void print_usage(FILE *stream) {
    fputs(usage, stream);
}

static bool run(const char *name, const struct text_list *arguments,
    const struct text_list *environment, int *out_status) {
    if (!text_equals(name, "show")) {
        return false;
    }
    *out_status = rendezvous_show(arguments, environment);
    return true;
}

int rendezvous_command(const struct text_list *arguments, const struct text_list *environment) {
    static const struct command_family family = {"rendezvous", print_usage, run};
    return command_family_run(&family, arguments, environment);
}
