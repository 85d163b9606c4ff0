/* SPDX-License-Identifier: BSD-3-Clause */
#include "main/store/store_session.h"

#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/duration.h"
#include "base/memory.h"
#include "base/utf8.h"
#include "host/loop/clock.h"
#include "host/telling/job_directory.h"
#include "main/command.h"
#include "options/argparse/option_parser.h"

/* Servers can be told to take more than PyTorch's do. */
#define LARGEST_VALUE ((size_t)1 << 30)
/* What libmuster takes for the default. */
#define UNSET 0.0
#define SHORTEST_TIMEOUT 1e-9

struct store_session {
    const char *program;
    struct muster_store *store;
};

/* The names that PyTorch has for the requests (QueryType). */
static const char *name_of(enum muster_store_operation operation) {
    static const char *const names[] = {
        [MUSTER_STORE_SET] = "SET",
        [MUSTER_STORE_GET] = "GET",
        [MUSTER_STORE_ADD] = "ADD",
        [MUSTER_STORE_APPEND] = "APPEND",
        [MUSTER_STORE_COMPARE_SET] = "COMPARE_SET",
        [MUSTER_STORE_CHECK] = "CHECK",
        [MUSTER_STORE_WAIT] = "WAIT",
        [MUSTER_STORE_DELETE_KEY] = "DELETE_KEY",
        [MUSTER_STORE_NUM_KEYS] = "GETNUMKEYS",
        [MUSTER_STORE_MULTI_GET] = "MULTI_GET",
        [MUSTER_STORE_MULTI_SET] = "MULTI_SET",
        [MUSTER_STORE_QUEUE_PUSH] = "QUEUE_PUSH",
        [MUSTER_STORE_QUEUE_POP] = "QUEUE_POP",
        [MUSTER_STORE_QUEUE_LEN] = "QUEUE_LEN",
        [MUSTER_STORE_LIST_KEYS] = "LIST_KEYS",
        [MUSTER_STORE_BARRIER] = "BARRIER",
        [MUSTER_STORE_PING] = "PING",
    };
    return names[operation];
}

/* A command only looks into a file store: it does not create the file and is not counted as a
 * user. */
static enum muster_error open_store(const struct store_place *place, double timeout,
    struct muster_store **out_store, struct muster_failure *failure) {
    if (place->path != NULL) {
        struct muster_file_store_settings settings = MUSTER_FILE_STORE_SETTINGS;
        settings.path = place->path;
        settings.is_visitor = 1;
        settings.timeout = timeout;
        return muster_store_new_file(&settings, out_store, failure);
    }
    struct muster_tcp_store_settings settings = MUSTER_TCP_STORE_SETTINGS;
    settings.host = place->host;
    settings.port = place->port;
    settings.timeout = timeout;
    settings.silence_timeout = place->silence_timeout;
    settings.token_file = place->token_file;
    settings.value_maximum = LARGEST_VALUE;
    return muster_store_new_tcp(&settings, out_store, failure);
}

struct store_session *store_session_new(
    const char *program, const struct store_place *place, double timeout) {
    struct muster_failure failure;
    struct store_session *session = memory_allocate(sizeof *session);
    session->program = program;
    if (open_store(place, timeout == UNSET ? SHORTEST_TIMEOUT : timeout, &session->store,
            &failure) != MUSTER_OK) {
        fprintf(stderr, "%s: error: %s\n", program, failure.message);
        free(session);
        return NULL;
    }
    return session;
}

void store_session_free(struct store_session *session) {
    if (session != NULL) {
        muster_store_free(session->store);
        free(session);
    }
}

struct muster_store *store_session_store(const struct store_session *session) {
    return session->store;
}

/* Hands a good answer on. */
static void take_answer(void *context, const struct muster_store_result *result) {
    const struct store_session_question *question = context;
    if (result->error == MUSTER_OK && question->take != NULL) {
        question->take(question->context, result);
    }
}

static bool exchange(struct store_session *session, const struct store_session_question *question) {
    struct muster_failure failure;
    struct store_session_question asked = *question;
    asked.request.size = sizeof asked.request;
    asked.request.timeout = question->has_no_time_limit ? -1 : UNSET;
    if (muster_store_call(session->store, &asked.request, take_answer, &asked, &failure) ==
        MUSTER_OK) {
        return true;
    }
    fprintf(stderr, "%s: error: %s: %s\n", session->program, name_of(asked.request.operation),
        failure.message);
    return false;
}

static bool has_no_answer(enum muster_store_operation operation) {
    return operation == MUSTER_STORE_SET || operation == MUSTER_STORE_APPEND ||
           operation == MUSTER_STORE_MULTI_SET || operation == MUSTER_STORE_QUEUE_PUSH;
}

bool store_session_ask(
    struct store_session *session, const struct store_session_question *question) {
    if (!exchange(session, question)) {
        return false;
    }
    /* For a request without an answer, success is known only when the next request is answered, so
     * a PING follows. */
    static const struct store_session_question ping = {.request.operation = MUSTER_STORE_PING};
    return !has_no_answer(question->request.operation) || exchange(session, &ping);
}

static void take_number(void *context, const struct muster_store_result *result) {
    *(int *)context = (int)result->number;
}

/* As store_session_ask, for an answer that is yes (1) or no (0); -1 when there was no answer. */
static int store_session_ask_whether(
    struct store_session *session, const struct store_session_question *question) {
    int answer = -1;
    struct store_session_question asked = *question;
    asked.take = take_number;
    asked.context = &answer;
    return store_session_ask(session, &asked) ? answer : -1;
}

/* For so many seconds. */
static void store_session_pause(struct store_session *session, double seconds) {
    struct instant end = instant_after(clock_now(), duration_from_seconds(seconds));
    struct duration left;
    while ((left = instant_until(clock_now(), end)).nanoseconds > 0) {
        struct pollfd pollfd = {.fd = muster_store_fd(session->store), .events = POLLIN};
        int64_t milliseconds = duration_milliseconds_ceiling(left);
        if (poll(&pollfd, 1, milliseconds > INT_MAX ? INT_MAX : (int)milliseconds) > 0) {
            (void)muster_store_process(session->store, NULL); /* a loss is told by the next call */
        }
    }
}

/* Inspect. */

/* Finds the store of the job that runs on this machine, for `muster store` without an endpoint:
 * agents announce themselves (host/telling/job_directory). */

enum store_finding {
    STORE_FINDING_NONE, /* no job of this user announces itself here */
    STORE_FINDING_ONE,
    STORE_FINDING_SEVERAL,
};

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

/* Says on stderr what was found: the one job, how to choose one of several, or that there is none.
 * `program` is how messages call the command. The caller clears the list (job_list_clear). */
static enum store_finding store_find_job(
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

/* Prints keys and values of a store on stdout. */

/* Prints the bytes unchanged, without a newline. On a terminal they are made printable. */
static void store_print_exact(struct muster_slice bytes) {
    if (bytes.length > 0 && isatty(STDOUT_FILENO) == 1) {
        char *shown = memory_duplicate(bytes.data, bytes.length);
        fwrite(shown, 1, utf8_make_printable(shown, bytes.length), stdout);
        free(shown);
    } else if (bytes.length > 0) {
        fwrite(bytes.data, 1, bytes.length, stdout);
    }
}

/* Prints one line: printable ASCII unchanged, a backslash doubled, every other byte as \xNN. */
static void store_print_line(struct muster_slice bytes) {
    for (size_t i = 0; i < bytes.length; i++) {
        uint8_t byte = ((const uint8_t *)bytes.data)[i];
        if (byte == '\\') {
            fputs("\\\\", stdout);
        } else if (byte >= 0x20 && byte < 0x7f) {
            putchar(byte);
        } else {
            printf("\\x%02x", byte);
        }
    }
    putchar('\n');
}

/* The commands of `muster store`, one function each: ask the store with the given options, print
 * the answer, return the exit status. */

/* The maximum size of a value read from stdin. By default servers accept much smaller values
 * only. */
#define STDIN_CEILING ((size_t)1 << 30)

static const char *text_option(const struct option_result *options, const char *name) {
    return option_result_value(options, name)->text;
}

static bool is_raw(const struct option_result *options) {
    return option_result_value(options, "raw")->flag;
}

static struct muster_slice slice_of_text(const char *text) {
    return (struct muster_slice){text, strlen(text)};
}

/* A question about one key, which the option "key" names. */
static struct store_session_question operations_about_key(
    const struct option_result *options, enum muster_store_operation operation) {
    return (struct store_session_question){
        .request = {
            .operation = operation, .key = text_option(options, "key"), .is_raw = is_raw(options)}};
}

static int status_of(bool is_done) {
    return is_done ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* Reads all of stdin into `out_bytes`. Prints the reason on failure. */
static bool read_stdin(struct bytes *out_bytes) {
    uint8_t chunk[16384];
    size_t length;
    bytes_init(out_bytes, STDIN_CEILING);
    while ((length = fread(chunk, 1, sizeof chunk, stdin)) > 0) {
        if (bytes_append(out_bytes, chunk, length) != FAILURE_NONE) {
            fputs("muster store: error: stdin is longer than 1 GiB\n", stderr);
            return false;
        }
    }
    if (ferror(stdin)) {
        fputs("muster store: error: cannot read stdin\n", stderr);
        return false;
    }
    return true;
}

/* Sends a value that was given as an argument, or on stdin when the argument is "-". */
static int send_value(struct store_session *session, enum muster_store_operation operation,
    const char *key, const char *value, bool key_is_raw) {
    struct store_session_question question = {
        .request = {.operation = operation, .key = key, .is_raw = key_is_raw}};
    struct bytes input = {0};
    bool is_ready = true;
    if (text_equals(value, "-")) {
        is_ready = read_stdin(&input);
        question.request.value = (struct muster_slice){input.data, input.length};
    } else {
        question.request.value = slice_of_text(value);
    }
    bool is_done = is_ready && store_session_ask(session, &question);
    bytes_clear(&input);
    return status_of(is_done);
}

/* Sends several pairs in one request; all of them are set, or none. */
static bool set_several(
    struct store_session *session, const struct text_list *pairs, bool keys_are_raw) {
    size_t count = pairs->count / 2;
    const char **keys = memory_allocate(count * sizeof *keys);
    struct muster_slice *values = memory_allocate(count * sizeof *values);
    for (size_t i = 0; i < count; i++) {
        keys[i] = pairs->items[2 * i];
        values[i] = slice_of_text(pairs->items[2 * i + 1]);
    }
    bool is_done = store_session_ask(
        session, &(struct store_session_question){.request = {.operation = MUSTER_STORE_MULTI_SET,
                                                      .keys = keys,
                                                      .values = values,
                                                      .count = count,
                                                      .is_raw = keys_are_raw}});
    free(values);
    free(keys);
    return is_done;
}

static int store_run_set(struct store_session *session, const struct option_result *options) {
    const struct text_list *pairs = &option_result_value(options, "pairs")->list;
    if (pairs->count % 2 != 0) {
        fputs("muster store set: error: the last key has no value\n", stderr);
        return EXIT_STATUS_USAGE;
    }
    if (pairs->count == 2) {
        return send_value(
            session, MUSTER_STORE_SET, pairs->items[0], pairs->items[1], is_raw(options));
    }
    return status_of(set_several(session, pairs, is_raw(options)));
}

static int store_run_append(struct store_session *session, const struct option_result *options) {
    return send_value(session, MUSTER_STORE_APPEND, text_option(options, "key"),
        text_option(options, "value"), is_raw(options));
}

static int store_run_push(struct store_session *session, const struct option_result *options) {
    return send_value(session, MUSTER_STORE_QUEUE_PUSH, text_option(options, "key"),
        text_option(options, "value"), is_raw(options));
}

static void print_integer(void *context, const struct muster_store_result *result) {
    (void)context;
    printf("%lld\n", (long long)result->number);
}

static void keep_integer(void *context, const struct muster_store_result *result) {
    *(int64_t *)context = result->number;
}

static int store_run_add(struct store_session *session, const struct option_result *options) {
    struct store_session_question question = operations_about_key(options, MUSTER_STORE_ADD);
    question.request.number = option_result_value(options, "number")->integer;
    question.take = print_integer;
    return status_of(store_session_ask(session, &question));
}

static int store_run_count(struct store_session *session, const struct option_result *options) {
    (void)options;
    return status_of(store_session_ask(
        session, &(struct store_session_question){
                     .request = {.operation = MUSTER_STORE_NUM_KEYS}, .take = print_integer}));
}

static int store_run_len(struct store_session *session, const struct option_result *options) {
    struct store_session_question question = operations_about_key(options, MUSTER_STORE_QUEUE_LEN);
    question.take = print_integer;
    return status_of(store_session_ask(session, &question));
}

static int store_run_delete(struct store_session *session, const struct option_result *options) {
    int64_t deleted = 0;
    struct store_session_question question = operations_about_key(options, MUSTER_STORE_DELETE_KEY);
    question.take = keep_integer;
    question.context = &deleted;
    if (!store_session_ask(session, &question)) {
        return EXIT_FAILURE;
    }
    return status_of(deleted > 0);
}

static void print_pop(void *context, const struct muster_store_result *result) {
    *(int64_t *)context = result->number;
    store_print_exact(result->value);
}

static int store_run_pop(struct store_session *session, const struct option_result *options) {
    int64_t length = 0;
    struct store_session_question question = operations_about_key(options, MUSTER_STORE_QUEUE_POP);
    question.request.number = option_result_value(options, "wait")->flag;
    question.take = print_pop;
    question.context = &length;
    if (!store_session_ask(session, &question)) {
        return EXIT_FAILURE;
    }
    if (length <= 0) {
        fputs("muster store pop: error: the queue is empty\n", stderr);
    }
    return status_of(length > 0);
}

static int store_run_barrier(struct store_session *session, const struct option_result *options) {
    struct store_session_question question = operations_about_key(options, MUSTER_STORE_BARRIER);
    question.request.number = option_result_value(options, "number")->integer;
    return status_of(store_session_ask(session, &question));
}

static int store_run_ping(struct store_session *session, const struct option_result *options) {
    (void)options;
    return status_of(store_session_ask(
        session, &(struct store_session_question){.request = {.operation = MUSTER_STORE_PING}}));
}

/* A question about the keys of the option "keys", which are borrowed. */
static struct store_session_question about_keys(
    const struct option_result *options, enum muster_store_operation operation) {
    const struct text_list *names = &option_result_value(options, "keys")->list;
    return (struct store_session_question){.request = {.operation = operation,
                                               .keys = (const char *const *)names->items,
                                               .count = names->count,
                                               .is_raw = is_raw(options)}};
}

static int store_run_wait(struct store_session *session, const struct option_result *options) {
    const struct store_session_question question = about_keys(options, MUSTER_STORE_WAIT);
    return status_of(store_session_ask(session, &question));
}

static int store_run_check(struct store_session *session, const struct option_result *options) {
    const struct store_session_question question = about_keys(options, MUSTER_STORE_CHECK);
    return status_of(store_session_ask_whether(session, &question) == 1);
}

static void print_values(void *context, const struct muster_store_result *result) {
    const struct muster_store_request *request = context;
    if (request->operation == MUSTER_STORE_GET) {
        store_print_exact(result->value);
        return;
    }
    for (size_t i = 0; i < result->count; i++) {
        store_print_line(result->values[i]);
    }
}

/* First asks whether the keys exist, because a GET waits until they do. */
static int store_run_get(struct store_session *session, const struct option_result *options) {
    const struct store_session_question check = about_keys(options, MUSTER_STORE_CHECK);
    int presence = store_session_ask_whether(session, &check);
    if (presence != 1) {
        if (presence == 0) {
            fputs("muster store get: error: no such key\n", stderr);
        }
        return EXIT_FAILURE;
    }
    struct store_session_question question = about_keys(options, MUSTER_STORE_MULTI_GET);
    question.take = print_values;
    question.context = &question.request;
    if (question.request.count == 1) {
        question.request.operation = MUSTER_STORE_GET;
        question.request.key = question.request.keys[0];
    }
    return status_of(store_session_ask(session, &question));
}

/* The value that a compare-and-set left in the store, and the value that it should set. */
struct comparison {
    struct slice desired;
    bool is_desired;
};

static void print_comparison(void *context, const struct muster_store_result *result) {
    struct comparison *comparison = context;
    struct slice value = {result->value.data, result->value.length};
    comparison->is_desired = slice_equals(value, comparison->desired);
    store_print_exact(result->value);
}

static int store_run_compare_set(
    struct store_session *session, const struct option_result *options) {
    struct store_session_question question =
        operations_about_key(options, MUSTER_STORE_COMPARE_SET);
    struct comparison comparison = {.desired = slice_from_string(text_option(options, "desired"))};
    question.request.expected = slice_of_text(text_option(options, "expected"));
    question.request.value = slice_of_text(text_option(options, "desired"));
    question.take = print_comparison;
    question.context = &comparison;
    return status_of(store_session_ask(session, &question) && comparison.is_desired);
}

/* Selects the keys to show, and how to show them. */
struct key_filter {
    struct slice prefix;
    bool shows_raw;
};

static void print_keys(void *context, const struct muster_store_result *result) {
    const struct key_filter *filter = context;
    for (size_t i = 0; i < result->count; i++) {
        struct slice key = {result->values[i].data, result->values[i].length};
        if (!filter->shows_raw) {
            if (key.length == 0 || key.data[0] != '/') {
                continue; /* skip the store's own keys, such as "init/", as upstream's list_keys()
                             does */
            }
            key = (struct slice){key.data + 1, key.length - 1};
        }
        if (slice_starts_with(key, filter->prefix)) {
            store_print_line((struct muster_slice){key.data, key.length});
        }
    }
}

static int store_run_keys(struct store_session *session, const struct option_result *options) {
    struct key_filter filter = {.shows_raw = is_raw(options)};
    const struct option_value *prefix = option_result_value(options, "prefix");
    if (prefix->is_set) {
        filter.prefix = slice_from_string(prefix->text);
    }
    return status_of(store_session_ask(
        session, &(struct store_session_question){.request = {.operation = MUSTER_STORE_LIST_KEYS},
                     .take = print_keys,
                     .context = &filter}));
}

/* Watch. */

struct watch {
    struct store_session *session;
    const char *key;
    bool is_raw;
    struct bytes value; /* the value that was shown last */
    bool has_value;
    bool has_changed;
};

static void compare_value(void *context, const struct muster_store_result *result) {
    struct watch *watch = context;
    struct slice value = {result->value.data, result->value.length};
    watch->has_changed = !watch->has_value || !slice_equals(bytes_slice(&watch->value), value);
    if (watch->has_changed) {
        watch->has_value = true;
        watch->value.length = 0;
        (void)!bytes_append(&watch->value, value.data, value.length);
        store_print_line(result->value);
        fflush(stdout);
    }
}

static struct store_session_question watch_about_key(
    const struct watch *watch, enum muster_store_operation operation) {
    return (struct store_session_question){.request = {.operation = operation,
                                               .key = watch->key,
                                               .keys = &watch->key,
                                               .count = 1,
                                               .is_raw = watch->is_raw}};
}

/* Waits for the key if it does not exist. Then shows its value if it has changed. */
static bool look(struct watch *watch) {
    const struct store_session_question check = watch_about_key(watch, MUSTER_STORE_CHECK);
    struct store_session_question wait = watch_about_key(watch, MUSTER_STORE_WAIT);
    struct store_session_question get = watch_about_key(watch, MUSTER_STORE_GET);
    int presence = store_session_ask_whether(watch->session, &check);
    if (presence == 0) {
        watch->has_value = false;
        wait.has_no_time_limit = true;
        presence = store_session_ask(watch->session, &wait) ? 1 : -1;
    }
    get.take = compare_value;
    get.context = watch;
    return presence == 1 && store_session_ask(watch->session, &get);
}

static int store_run_watch(struct store_session *session, const struct option_result *options) {
    struct watch watch = {
        .session = session,
        .key = option_result_value(options, "key")->text,
        .is_raw = option_result_value(options, "raw")->flag,
    };
    const struct option_value *changes = option_result_value(options, "changes");
    double interval = option_result_value(options, "interval")->number;
    int64_t shown = 0;
    bool is_done = false;
    while (!is_done && look(&watch)) {
        shown += watch.has_changed;
        is_done = changes->is_set && shown >= changes->integer;
        if (!is_done) {
            store_session_pause(session, interval);
        }
    }
    bytes_clear(&watch.value);
    return is_done ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* Inspect. */

#define DEFAULT_HOST "localhost"
#define DEFAULT_PORT 29500

static const char *choose_host(
    const struct option_result *options, const struct text_list *environment) {
    const struct option_value *host = option_result_value(options, "host");
    if (host->is_set) {
        return host->text;
    }
    const char *master = text_list_variable(environment, "MASTER_ADDR");
    return master != NULL && *master != '\0' ? master : DEFAULT_HOST;
}

/* Returns 0 when the value is not a port; the mistake is then in the result. */
static int choose_port(struct option_result *options, const struct text_list *environment) {
    const struct option_value *port = option_result_value(options, "port");
    const char *master = text_list_variable(environment, "MASTER_PORT");
    int64_t number = DEFAULT_PORT;
    if (port->is_set) {
        number = port->integer;
    } else if (master != NULL && text_parse_integer(master, &number) != FAILURE_NONE) {
        number = 0;
    }
    if (number < 1 || number > 65535) {
        option_result_reject(
            options, "port", port->is_set ? "must be 1 to 65535" : "MASTER_PORT is no port");
        return 0;
    }
    return (int)number;
}

/* Returns false when the value is not a place; the mistake is then in the result. */
static bool choose_place(struct option_result *options, const struct text_list *environment,
    struct store_place *out_place) {
    const struct option_value *file = option_result_value(options, "file");
    if (!file->is_set) {
        *out_place = (struct store_place){
            .host = choose_host(options, environment),
            .port = choose_port(options, environment),
            .token_file = option_result_value(options, "token_file")->text,
            .silence_timeout = option_result_value(options, "silence_timeout")->number,
        };
        return out_place->port != 0;
    }
    if (option_result_value(options, "host")->is_set ||
        option_result_value(options, "port")->is_set) {
        option_result_reject(options, "file", "not allowed with --host or --port");
        return false;
    }
    *out_place = (struct store_place){.path = file->text};
    return true;
}

static bool says_endpoint(
    const struct option_result *options, const struct text_list *environment) {
    static const char *const names[] = {"host", "port", "file"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (option_result_value(options, names[i])->is_set) {
            return true;
        }
    }
    return text_list_variable(environment, "MASTER_ADDR") != NULL ||
           text_list_variable(environment, "MASTER_PORT") != NULL;
}

/* Where nobody says which store is meant, the job of this machine has it; where there is no such
 * job, the place stays the one at which a store is by default. False when there are several. */
static bool find_place(const char *program, const struct text_list *environment,
    struct job_list *jobs, struct store_place *place) {
    enum store_finding finding = store_find_job(program, environment, jobs);
    if (finding == STORE_FINDING_ONE) {
        place->host = jobs->items[0].host;
        place->port = jobs->items[0].port;
    }
    return finding != STORE_FINDING_SEVERAL;
}

static void check_times(struct option_result *options) {
    if (option_result_value(options, "silence_timeout")->number < 2) {
        option_result_reject(options, "silence_timeout", "must be 2 or more");
    }
    if (option_result_value(options, "timeout")->number < 0) {
        option_result_reject(options, "timeout", "must not be negative");
    }
}

static int ask_at(const struct store_inspect_command *command, const char *program,
    const struct option_result *options, const struct store_place *place) {
    struct store_session *session =
        store_session_new(program, place, option_result_value(options, "timeout")->number);
    if (session == NULL) {
        return EXIT_FAILURE;
    }
    int status = command->run(session, options);
    store_session_free(session);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "%s: error: cannot write the answer\n", program);
        return EXIT_FAILURE;
    }
    return status;
}

static int ask(const struct store_inspect_command *command, const char *program,
    struct option_result *options, const struct text_list *environment) {
    struct store_place place;
    struct job_list jobs = {0};
    bool has_place = choose_place(options, environment, &place);
    check_times(options);
    if (!has_place || options->outcome != OPTION_OUTCOME_VALUES) {
        fputs(options->text, stderr);
        return EXIT_STATUS_USAGE;
    }
    bool is_clear =
        says_endpoint(options, environment) || find_place(program, environment, &jobs, &place);
    int status = is_clear ? ask_at(command, program, options, &place) : EXIT_STATUS_USAGE;
    job_list_clear(&jobs);
    return status;
}

int store_inspect(const struct store_inspect_command *command, const struct text_list *arguments,
    const struct text_list *environment) {
    char *program = text_format("muster store %s", command->name);
    struct option_result options;
    option_parse(&command->table, program, arguments, environment, &options);
    int status = options.outcome == OPTION_OUTCOME_VALUES
                     ? ask(command, program, &options, environment)
                     : command_print(&options);
    option_result_clear(&options);
    free(program);
    return status;
}

/* Inspect table. */

/* The options that every command has. */
#define COMMON_OPTIONS                                                                             \
    OPTION_DEFINITION_HELP,                                                                        \
        {.destination = "host",                                                                    \
            .names = {"--host"},                                                                   \
            .help = "Where the store is: a name, IPv4 or IPv6. Default: MASTER_ADDR; without any " \
                    "place the one job of this user on this machine; else localhost."},            \
        {.destination = "port",                                                                    \
            .names = {"--port"},                                                                   \
            .kind = OPTION_INTEGER,                                                                \
            .help = "Its port. Default: MASTER_PORT, else 29500."},                                \
        {.destination = "file",                                                                    \
            .names = {"--file"},                                                                   \
            .help = "Instead of host and port: the file of a FileStore. It must exist, and has "   \
                    "neither queues nor barriers."},                                               \
        {.destination = "timeout",                                                                 \
            .names = {"--timeout"},                                                                \
            .kind = OPTION_FLOAT,                                                                  \
            .default_text = "10",                                                                  \
            .help = "Seconds to wait for the store, and for each answer. Default: 10."},           \
        {.destination = "silence_timeout",                                                         \
            .names = {"--silence-timeout"},                                                        \
            .kind = OPTION_FLOAT,                                                                  \
            .default_text = "180",                                                                 \
            .help = "Seconds the store's machine may not answer at all, whatever is waited for; "  \
                    "2 or more. Default: 180."},                                                   \
        {.destination = "token_file",                                                              \
            .names = {"--token-file"},                                                             \
            .help = "File with the token that the store asks for, which only this user may read "  \
                    "(mode 0600)."},                                                               \
    {                                                                                              \
        .destination = "raw", .names = {"--raw"}, .kind = OPTION_FLAG,                             \
        .help = "Take keys as they are on the wire, without a '/' put in front."                   \
    }

#define KEY_ARGUMENT                                                                               \
    { .destination = "key", .help = "The key." }

#define KEYS_ARGUMENT                                                                              \
    { .destination = "keys", .arity = OPTION_ARITY_SOME, .help = "The keys." }

#define VALUE_ARGUMENT                                                                             \
    { .destination = "value", .help = "The value; - reads it from stdin." }

static const struct option_definition get_options[] = {
    COMMON_OPTIONS,
    KEYS_ARGUMENT,
};

static const struct option_definition set_options[] = {
    COMMON_OPTIONS,
    {.destination = "pairs",
        .arity = OPTION_ARITY_SOME,
        .help = "A key and its value; a single value may be - for stdin. More pairs may follow."},
};

static const struct option_definition append_options[] = {
    COMMON_OPTIONS,
    KEY_ARGUMENT,
    VALUE_ARGUMENT,
};

static const struct option_definition add_options[] = {
    COMMON_OPTIONS,
    KEY_ARGUMENT,
    {.destination = "number",
        .kind = OPTION_INTEGER,
        .arity = OPTION_ARITY_OPTIONAL,
        .default_text = "1",
        .help = "What to add; may be negative. Default: 1."},
};

static const struct option_definition compare_set_options[] = {
    COMMON_OPTIONS,
    KEY_ARGUMENT,
    {.destination = "expected", .help = "What the value should be now; empty: none."},
    {.destination = "desired", .help = "What it is to become."},
};

static const struct option_definition check_options[] = {
    COMMON_OPTIONS,
    KEYS_ARGUMENT,
};

static const struct option_definition wait_options[] = {
    COMMON_OPTIONS,
    KEYS_ARGUMENT,
};

static const struct option_definition delete_options[] = {
    COMMON_OPTIONS,
    KEY_ARGUMENT,
};

static const struct option_definition keys_options[] = {
    COMMON_OPTIONS,
    {.destination = "prefix",
        .arity = OPTION_ARITY_OPTIONAL,
        .help = "Show only keys that start with this."},
};

static const struct option_definition count_options[] = {
    COMMON_OPTIONS,
};

static const struct option_definition watch_options[] = {
    COMMON_OPTIONS,
    KEY_ARGUMENT,
    {.destination = "interval",
        .names = {"--interval"},
        .kind = OPTION_FLOAT,
        .default_text = "0.5",
        .help = "Seconds between two looks. Default: 0.5."},
    {.destination = "changes",
        .names = {"--changes"},
        .kind = OPTION_INTEGER,
        .help = "Exit after so many lines."},
};

static const struct option_definition push_options[] = {
    COMMON_OPTIONS,
    KEY_ARGUMENT,
    VALUE_ARGUMENT,
};

static const struct option_definition pop_options[] = {
    COMMON_OPTIONS,
    KEY_ARGUMENT,
    {.destination = "wait",
        .names = {"--wait"},
        .kind = OPTION_FLAG,
        .help = "Wait until there is something, as PyTorch's queue_pop does."},
};

static const struct option_definition len_options[] = {
    COMMON_OPTIONS,
    KEY_ARGUMENT,
};

static const struct option_definition barrier_options[] = {
    COMMON_OPTIONS,
    KEY_ARGUMENT,
    {.destination = "number", .kind = OPTION_INTEGER, .help = "How many have to come."},
};

static const struct option_definition ping_options[] = {
    COMMON_OPTIONS,
};

/* Completes a table that has these definitions. */
#define TABLE(definitions_of, text)                                                                \
    {                                                                                              \
        .description = (text), .definitions = (definitions_of),                                    \
        .definition_count = sizeof(definitions_of) / sizeof((definitions_of)[0])                   \
    }

const struct store_inspect_command store_inspect_commands[] = {
    {
        .name = "get",
        .synopsis = "get KEY...",
        .summary = "print a value",
        .table = TABLE(get_options,
            "Print the value of a key exactly as it is stored, without a newline "
            "(on a terminal with '?' for control characters). "
            "With several keys each value is one line, with bytes that are not "
            "printable ASCII written as \\xNN. A key that does not exist is a "
            "failure (status 1); `wait` waits for one."),
        .run = store_run_get,
    },
    {
        .name = "set",
        .synopsis = "set KEY VALUE...",
        .summary = "store a value",
        .table = TABLE(set_options,
            "Store a value under a key. With several pairs of key and value all are "
            "stored in one request."),
        .run = store_run_set,
    },
    {
        .name = "append",
        .synopsis = "append KEY VALUE",
        .summary = "add to the end of a value",
        .table =
            TABLE(append_options, "Add to the end of a value; a key that does not exist is made."),
        .run = store_run_append,
    },
    {
        .name = "add",
        .synopsis = "add KEY [NUMBER]",
        .summary = "count up and print the counter",
        .table = TABLE(add_options,
            "Add a number to a counter and print what it is then. A key that does "
            "not exist counts from 0."),
        .run = store_run_add,
    },
    {
        .name = "compare-set",
        .synopsis = "compare-set KEY EXPECTED DESIRED",
        .summary = "replace a value if it is the expected one",
        .table = TABLE(compare_set_options,
            "Store DESIRED if the value is EXPECTED, or if there is none and "
            "EXPECTED is empty. Prints the value the store answers with; the status "
            "is 0 if that is DESIRED. Of a key that does not exist the store "
            "answers with EXPECTED, as PyTorch does."),
        .run = store_run_compare_set,
    },
    {
        .name = "check",
        .synopsis = "check KEY...",
        .summary = "status 0 if all keys exist",
        .table = TABLE(check_options, "Exit with 0 if all keys exist, else with 1."),
        .run = store_run_check,
    },
    {
        .name = "wait",
        .synopsis = "wait KEY...",
        .summary = "wait until all keys exist",
        .table =
            TABLE(wait_options, "Wait until all keys exist; 1 when the timeout passes before."),
        .run = store_run_wait,
    },
    {
        .name = "delete",
        .synopsis = "delete KEY",
        .summary = "delete a key",
        .table = TABLE(delete_options, "Delete a key; 1 if it does not exist."),
        .run = store_run_delete,
    },
    {
        .name = "keys",
        .synopsis = "keys [PREFIX]",
        .summary = "list the keys, one per line",
        .table = TABLE(keys_options,
            "List the keys, one per line; bytes that are not printable ASCII are "
            "written as \\xNN. --raw also shows those not made by users."),
        .run = store_run_keys,
    },
    {
        .name = "count",
        .synopsis = "count",
        .summary = "print the number of keys",
        .table =
            TABLE(count_options, "Print the number of keys, those not made by users included."),
        .run = store_run_count,
    },
    {
        .name = "watch",
        .synopsis = "watch KEY",
        .summary = "print a value whenever it changes",
        .table = TABLE(watch_options,
            "Wait for a key to exist and print its value, then again whenever it "
            "has changed, one line each. A store does not report changes, so the "
            "key is read every --interval; a value that is replaced twice in "
            "between is seen once. Runs until interrupted."),
        .run = store_run_watch,
    },
    {
        .name = "push",
        .synopsis = "push KEY VALUE",
        .summary = "add to a queue",
        .table = TABLE(push_options, "Add a value to the end of a queue."),
        .run = store_run_push,
    },
    {
        .name = "pop",
        .synopsis = "pop KEY",
        .summary = "take from a queue and print it",
        .table = TABLE(pop_options,
            "Take the first value of a queue and print it exactly as it is; 1 if "
            "the queue is empty."),
        .run = store_run_pop,
    },
    {
        .name = "len",
        .synopsis = "len KEY",
        .summary = "print the length of a queue",
        .table = TABLE(len_options, "Print the length of a queue."),
        .run = store_run_len,
    },
    {
        .name = "barrier",
        .synopsis = "barrier KEY NUMBER",
        .summary = "wait until so many have come",
        .table = TABLE(barrier_options,
            "Wait until NUMBER clients have come to this barrier. It counts up once "
            "and for all: a barrier is used once."),
        .run = store_run_barrier,
    },
    {
        .name = "ping",
        .synopsis = "ping",
        .summary = "status 0 if the store answers",
        .table = TABLE(ping_options, "Exit with 0 if the store answers."),
        .run = store_run_ping,
    },
};

const size_t store_inspect_command_count =
    sizeof store_inspect_commands / sizeof store_inspect_commands[0];
