/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "agent/telling/agent_voice.h"

struct fixture {
    struct launch_config config;
    struct log log;
    struct text said;
    struct agent_voice voice;
};

static void keep_line(
    void *context, enum log_level level, const char *origin, const char *message) {
    (void)level;
    (void)origin;
    text_append_format(context, "%s\n", message);
}

static void set_up(struct fixture *fixture, enum launch_rendezvous rendezvous, int nodes) {
    *fixture = (struct fixture){.config = {.rendezvous = rendezvous,
                                    .minimum_nodes = nodes,
                                    .maximum_nodes = nodes,
                                    .sets_omp_num_threads = true}};
    fixture->log = (struct log){LOG_LEVEL_WARNING, keep_line, &fixture->said};
    fixture->voice = (struct agent_voice){.config = &fixture->config, .log = &fixture->log};
    text_list_add(&fixture->config.warnings, "option");
    text_list_add(&fixture->config.meeting_warnings, "place");
}

/* What was said since the last look. */
static void assert_said(struct fixture *fixture, const char *lines) {
    struct text short_lines = {0};
    const char *rest = text_string(&fixture->said);
    while (*rest != '\0') {
        const char *end = strchr(rest, '\n') + 1;
        bool is_about_threads = text_starts_with(rest, "OMP_NUM_THREADS");
        if (is_about_threads) {
            text_append(&short_lines, "threads\n");
        } else {
            text_append_bytes(&short_lines, rest, (size_t)(end - rest));
        }
        rest = end;
    }
    assert_string_equal(text_string(&short_lines), lines);
    text_clear(&short_lines);
    text_clear(&fixture->said);
}

static void tear_down(struct fixture *fixture) {
    agent_voice_clear(&fixture->voice);
    text_clear(&fixture->said);
    text_list_clear(&fixture->config.warnings);
    text_list_clear(&fixture->config.meeting_warnings);
}

TEST(the_host_speaks_of_the_place_and_the_first_node_of_the_rest) {
    struct fixture fixture;
    for (int rank = 0; rank < 2; rank++) {
        for (int is_host = 0; is_host < 2; is_host++) {
            set_up(&fixture, LAUNCH_RENDEZVOUS_DYNAMIC, 2);
            agent_voice_begin(&fixture.voice);
            agent_voice_count(&fixture.voice, 2, &(struct text_list){0});
            agent_voice_hear(&fixture.voice, (struct slice){0});
            assert_said(&fixture, "option\n"); /* who is first is not known yet */
            if (is_host) {
                agent_voice_host(&fixture.voice);
                assert_said(&fixture, "place\n");
            }
            agent_voice_place(&fixture.voice, rank, true, 2);
            assert_said(&fixture, rank == 0 ? "threads\n" : "");
            agent_voice_place(&fixture.voice, 0, true, 2); /* another round */
            agent_voice_end(&fixture.voice);
            assert_said(&fixture, "");
            tear_down(&fixture);
        }
    }
}

/* What `other`, a node with the warnings "option" and perhaps `more`, has in the store. */
static void hear_of(struct fixture *fixture, const char *more) {
    struct fixture other;
    set_up(&other, LAUNCH_RENDEZVOUS_DYNAMIC, 2);
    if (more != NULL) {
        text_list_add(&other.config.warnings, more);
    }
    agent_voice_begin(&other.voice);
    const char *words = agent_voice_write_words(&other.voice, "node1_4711_1");
    assert_non_null(words);
    assert_null(strstr(words, "option")); /* others read the store, too */
    agent_voice_hear(&fixture->voice, slice_from_string(words));
    tear_down(&other);
}

FIXTURE_TEST_AFTER(warnings_of_which_nobody_is_known_to_speak_are_said_after_a_while,
    set_up(&fixture, LAUNCH_RENDEZVOUS_DYNAMIC, 2)) {
    agent_voice_begin(&fixture->voice);
    agent_voice_wait(&fixture->voice);
    assert_said(fixture, "option\n");
    hear_of(fixture, NULL);
    agent_voice_wait(&fixture->voice);
    assert_said(fixture, "");
}

FIXTURE_TEST_AFTER(a_node_without_warnings_keeps_nothing_in_the_store,
    set_up(&fixture, LAUNCH_RENDEZVOUS_DYNAMIC, 2)) {
    text_list_clear(&fixture->config.warnings);
    agent_voice_begin(&fixture->voice);
    assert_null(agent_voice_write_words(&fixture->voice, "node2_4711_2"));
}

FIXTURE_TEST_AFTER(where_no_agent_is_the_host_the_first_node_speaks_of_the_place,
    set_up(&fixture, LAUNCH_RENDEZVOUS_DYNAMIC, 2)) {
    agent_voice_begin(&fixture->voice);
    text_clear(&fixture->said);
    agent_voice_place(&fixture->voice, 0, false, 1);
    assert_said(fixture, "place\n");
}

FIXTURE_TEST_AFTER(
    who_never_came_to_a_round_keeps_nothing_back, set_up(&fixture, LAUNCH_RENDEZVOUS_DYNAMIC, 2)) {
    agent_voice_begin(&fixture->voice);
    text_clear(&fixture->said);
    agent_voice_end(&fixture->voice);
    assert_said(fixture, "option\nplace\n");
}

/* What is said at `threshold` of what was asked for: before there is a place, and from then on. */
static void check_launch(enum log_level threshold, int rank, bool is_host, const char *expected) {
    struct fixture fixture;
    set_up(&fixture, LAUNCH_RENDEZVOUS_DYNAMIC, 2);
    text_list_clear(&fixture.config.meeting_warnings);
    fixture.log.threshold = threshold;
    agent_voice_begin(&fixture.voice);
    text_clear(&fixture.said);
    agent_voice_launch(&fixture.voice, "launch");
    if (is_host) {
        agent_voice_host(&fixture.voice);
    }
    agent_voice_place(&fixture.voice, rank, is_host, 1);
    agent_voice_end(&fixture.voice);
    text_list_clear(&fixture.voice.held);
    assert_non_null(strstr(text_string(&fixture.said), expected));
    assert_int_equal(strstr(text_string(&fixture.said), "launch") != NULL, *expected != '\0');
    assert_int_equal(fixture.voice.is_followers, rank > 0 && threshold > LOG_LEVEL_DEBUG);
    tear_down(&fixture);
}

TEST(what_was_asked_for_is_said_by_one_node_and_with_debugging_by_each) {
    check_launch(LOG_LEVEL_INFO, 0, false, "launch\n");
    check_launch(LOG_LEVEL_INFO, 1, false, "");
    check_launch(LOG_LEVEL_INFO, 1, true, "launch\n");
    check_launch(LOG_LEVEL_DEBUG, 1, false, "launch\n");
}
