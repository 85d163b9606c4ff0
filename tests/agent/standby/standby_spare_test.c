/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <string.h>

#include "agent/standby/agent_standby.h"
#include "standby_fixture.h"
#include "temporary_tree.h"

static void note_speech(void *context, int local_rank) {
    struct standby_fixture *fixture = context;
    text_append_format(&fixture->told, "%d", local_rank);
    event_loop_stop(fixture->loop);
}

static struct standby_spare *start(
    struct standby_fixture *fixture, const struct text_list *environment) {
    struct standby_spare *spare = NULL;
    const struct standby_spare_order order = {.local_rank = 0,
        .environment = environment,
        .starter = &fixture->starter,
        .spoke = note_speech,
        .context = fixture};
    assert_int_equal(standby_spare_start(fixture->loop, &order, &spare, NULL), FAILURE_NONE);
    return spare;
}

STANDBY_TEST_AFTER(what_it_says_is_kept, standby_fixture_init(&fixture, STANDBY_PLAY_DIRTY)) {
    struct text_list environment = {0};
    struct standby_spare *spare = start(fixture, &environment);
    assert_false(standby_spare_words(spare)->is_ready);
    while (standby_spare_words(spare)->reason == NULL) {
        event_loop_run(fixture->loop);
    }
    assert_true(standby_spare_words(spare)->has_reached_hook);
    assert_string_equal(standby_spare_words(spare)->reason, "a ?thread"); /* fit to be shown */
    standby_spare_free(spare);
}

STANDBY_TEST(it_ends_when_its_gate_is_closed) {
    struct text_list environment = {0};
    struct standby_spare *spare = start(fixture, &environment);
    while (!standby_spare_words(spare)->is_ready) {
        event_loop_run(fixture->loop);
    }
    pid_t pid = standby_spare_pid(spare);
    standby_spare_free(spare);
    event_loop_run(fixture->loop); /* until the family tells of its end */
    assert_int_equal(kill(pid, 0), -1);
}

STANDBY_TEST_AFTER(what_it_says_after_its_gate_was_shut_is_not_heard,
    standby_fixture_init(&fixture, STANDBY_PLAY_SILENT)) {
    struct text_list environment = {0};
    const int streams[2] = {-1, -1};
    struct standby_spare *spare = start(fixture, &environment);
    while (!standby_spare_words(spare)->is_ready) {
        event_loop_run(fixture->loop);
    }
    assert_int_equal(standby_spare_send(spare, &environment, streams, 0, NULL), FAILURE_NONE);
    standby_spare_shut(spare);
    assert_false(standby_spare_words(spare)->has_gone_through);
    assert_int_not_equal(standby_spare_send(spare, &environment, streams, 0, NULL), FAILURE_NONE);
    standby_spare_free(spare);
}

/* The worker is started anew then: a process that is started anew is in it all the same. */
STANDBY_TEST(a_working_directory_that_is_gone_is_said) {
    struct temporary_tree tree;
    struct text_list environment = {0};
    struct failure failure = {0};
    const int streams[2] = {-1, -1};
    int home = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct standby_spare *spare = start(fixture, &environment);
    temporary_tree_init(&tree);
    assert_int_equal(chdir(tree.root), 0);
    temporary_tree_clear(&tree);
    enum failure_code code = standby_spare_send(spare, &environment, streams, 0, &failure);
    assert_int_equal(fchdir(home), 0);
    close(home);
    assert_int_not_equal(code, FAILURE_NONE);
    assert_non_null(strstr(failure.message, "the working directory has no name any more"));
    standby_spare_free(spare);
}
