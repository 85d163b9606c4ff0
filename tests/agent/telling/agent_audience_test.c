/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <unistd.h>

#include "agent/agent.h"
#include "agent/rendezvous/agent_joining.h"
#include "agent_fixture.h"

/* The first letters of the lines, without those of metrics. */
static void note(void *context, const char *lines) {
    struct text *told = context;
    const char *end;
    for (; (end = strchr(lines, '\n')) != NULL; lines = end + 1) {
        if (*lines != 'M') {
            text_append_bytes(told, lines, 1);
        }
    }
    assert_int_equal(*lines, '\0');
}

static void assert_told(const char *command, const char *expected) {
    struct agent_fixture fixture;
    struct text told = {0};
    const struct agent_program program = {.audience = {.tell = note, .tell_context = &told}};
    struct log_sink *sink = log_sink_new("CRITICAL", STDERR_FILENO);
    agent_fixture_init(&fixture, 2, command);
    (void)agent_run_for(&program, &fixture.config, &fixture.environment, sink);
    assert_string_equal(text_string(&told), expected);
    text_clear(&told);
    log_sink_free(sink);
    agent_fixture_clear(&fixture);
}

static void program_hears_events_and_the_result(void **state) {
    (void)state;
    /* rendezvous, ranks, two starts, two ends, the agent's end; two workers */
    assert_told("exit 0", "EEEEEEEWWR");
}

static void program_hears_of_failures_and_their_cause(void **state) {
    (void)state;
    assert_told("test $RANK = 1 && exit 3; exec sleep 100", "EEEEEEEWFCR");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(program_hears_events_and_the_result),
    cmocka_unit_test(program_hears_of_failures_and_their_cause),
};

UNIT_TESTS(tests)
