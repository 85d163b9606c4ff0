/* SPDX-License-Identifier: BSD-3-Clause */
#include "main/command.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/utf8.h"
#include "host/log/log_sink.h"
#include "host/loop/descriptors.h"

/* The mistake has been said. */
static int end_with_usage(const struct command_family *family) {
    fprintf(stderr, "usage: muster %s COMMAND [OPTION]…; muster %s --help shows every command\n",
        family->name, family->name);
    return EXIT_STATUS_USAGE;
}

int command_family_run(const struct command_family *family, const struct text_list *arguments,
    const struct text_list *environment) {
    if (arguments->count == 0) {
        fprintf(stderr, "muster %s: error: a command is missing\n", family->name);
        return end_with_usage(family);
    }
    const char *name = arguments->items[0];
    if (text_equals(name, "--help") || text_equals(name, "-h") || text_equals(name, "help")) {
        family->print_usage(stdout);
        return EXIT_SUCCESS;
    }
    struct text_list rest = {0};
    for (size_t i = 1; i < arguments->count; i++) {
        text_list_add(&rest, arguments->items[i]);
    }
    int status;
    if (!family->run(name, &rest, environment, &status)) {
        fprintf(stderr, "muster %s: error: unknown command '%s'\n", family->name, name);
        status = end_with_usage(family);
    }
    text_list_clear(&rest);
    return status;
}

int command_print(const struct option_result *result) {
    bool is_mistake = result->outcome == OPTION_OUTCOME_MISTAKE;
    if (is_mistake) {
        utf8_make_string_printable(result->text);
    }
    fputs(result->text, is_mistake ? stderr : stdout);
    return is_mistake ? EXIT_STATUS_USAGE : EXIT_SUCCESS;
}

/* Command service. */

static void stop_loop(void *context, int signal) {
    (void)signal;
    event_loop_stop(context);
}

/* What whoever has started this process ignores stays ignored, as for a script's "command &". */
static size_t leave_ignored(int *signals, size_t count) {
    uint64_t ignored = signal_watch_ignored();
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        if ((ignored & signal_watch_bit(signals[i])) == 0) {
            signals[kept++] = signals[i];
        }
    }
    return kept;
}

void command_service_log(
    const struct log *log, int level, const char *origin, const char *message) {
    log_record(log, (enum log_level)(level / 10 - 1), origin, "%s", message);
}

int command_service_run(
    const struct command_service *service, const struct text_list *environment) {
    int ending[] = {SIGTERM, SIGINT};
    size_t ending_count = leave_ignored(ending, 2);
    struct event_loop *loop = NULL;
    struct signal_watch *signals = NULL;
    struct failure failure = {0};
    struct log_sink *sink =
        log_sink_new(text_list_variable(environment, "LOGLEVEL"), STDERR_FILENO);
    signal_watch_ignore_write_signals();
    descriptor_limit_raise(); /* each client needs a descriptor */
    enum failure_code code = event_loop_new(&loop, &failure);
    if (code == FAILURE_NONE) {
        code = signal_watch_new(loop, ending, ending_count, stop_loop, loop, &signals, &failure);
    }
    if (code == FAILURE_NONE) {
        code = service->start(service->context, loop, log_sink_log(sink), &failure);
    }
    if (code == FAILURE_NONE) {
        event_loop_run(loop);
    } else {
        fprintf(stderr, "%s: error: %s\n", service->program, failure.message);
    }
    service->stop(service->context);
    signal_watch_go_deaf(signals);
    signal_watch_free(signals);
    event_loop_free(loop);
    log_sink_free(sink);
    return code == FAILURE_NONE ? EXIT_SUCCESS : EXIT_FAILURE;
}
