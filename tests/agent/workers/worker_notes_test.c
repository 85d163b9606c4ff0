/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "agent/workers/agent_workers.h"

#define SIGNAL_NUMBER_KILL 9
#define SIGNAL_NUMBER_TERMINATE 15

static void expect(
    const struct worker_notes *notes, int signal, const char *kernel, const char *expected) {
    struct text evidence = {0};
    const struct process_exit how = {.is_signal = true, .value = signal};
    text_append(&evidence, kernel);
    worker_notes_add(notes, &how, &evidence);
    assert_string_equal(text_string(&evidence), expected);
    text_clear(&evidence);
}

static void without_notes_there_is_what_the_kernel_tells(void **state) {
    (void)state;
    struct worker_notes notes = {0};
    expect(&notes, SIGNAL_NUMBER_KILL, "no memory was left", "no memory was left");
    expect(&notes, SIGNAL_NUMBER_KILL, "", "");
}

static void who_has_signalled_comes_first(void **state) {
    (void)state;
    struct worker_notes notes = {0};
    worker_notes_set_signal(&notes, SIGNAL_NUMBER_TERMINATE, "by nobody");
    worker_notes_set_signal(&notes, SIGNAL_NUMBER_KILL, "by the watchdog");
    expect(&notes, SIGNAL_NUMBER_KILL, "", "killed by the watchdog");
    expect(&notes, SIGNAL_NUMBER_TERMINATE, "no memory was left",
        "had been signalled by the watchdog; no memory was left");
    worker_notes_clear(&notes);
    expect(&notes, SIGNAL_NUMBER_KILL, "", "");
}

static void what_it_was_doing_comes_last(void **state) {
    (void)state;
    struct worker_notes notes = {0};
    worker_notes_set_hang(&notes, "sleeping");
    expect(&notes, SIGNAL_NUMBER_KILL, "", "before that it was sleeping");
    worker_notes_set_signal(&notes, SIGNAL_NUMBER_KILL, "by us");
    worker_notes_set_hang(&notes, "reading");
    expect(&notes, SIGNAL_NUMBER_KILL, "core dumped",
        "killed by us; core dumped; before that it was reading");
    worker_notes_clear(&notes);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(without_notes_there_is_what_the_kernel_tells),
    cmocka_unit_test(who_has_signalled_comes_first),
    cmocka_unit_test(what_it_was_doing_comes_last),
};

UNIT_TESTS(tests)
