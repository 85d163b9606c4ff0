/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <unistd.h>

#include "agent/agent.h"
#include "agent/telling/agent_event_log.h"
#include "agent_fixture.h"
#include "host/loop/whole_file.h"
#include "wire/json/json_document.h"

/* "AGENT:RENDEZVOUS …" of what a job records in a file. */
static void run_and_read(struct agent_fixture *fixture, struct text *out_story) {
    struct log_sink *sink = log_sink_new("CRITICAL", STDERR_FILENO);
    struct failure failure = {0};
    struct bytes content = {0};
    fixture->config.event_handler = LAUNCH_EVENTS_FILE;
    fixture->config.event_file = text_format("%s/events", fixture->directory);
    agent_run(&fixture->config, &fixture->environment, sink);
    log_sink_free(sink);
    assert_int_equal(whole_file_read(fixture->config.event_file, false, 65536, &content, &failure),
        FAILURE_NONE);
    static const char nul = '\0';
    assert_int_equal(bytes_append(&content, &nul, 1), FAILURE_NONE);
    for (char *line = strtok((char *)content.data, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        struct json_document *document;
        assert_int_equal(
            json_document_parse(slice_from_string(line), 65536, &document, NULL), FAILURE_NONE);
        struct json_value *root = json_document_root(document);
        text_append_format(out_story, "%s%s:%s", out_story->length == 0 ? "" : " ",
            json_value_text(json_value_member(root, "source")),
            json_value_text(json_value_member(json_value_member(root, "metadata"), "state")));
        json_document_free(document);
    }
    bytes_clear(&content);
}

static void assert_story(int restarts, const char *command, const char *expected) {
    struct agent_fixture fixture;
    struct text story = {0};
    agent_fixture_init(&fixture, 2, command);
    fixture.config.max_restarts = restarts;
    run_and_read(&fixture, &story);
    assert_string_equal(text_string(&story), expected);
    text_clear(&story);
    agent_fixture_clear(&fixture);
}

#define BEGINNING "AGENT:RENDEZVOUS AGENT:ASSIGN_WORKER_RANKS WORKER:START WORKER:START"

TEST(a_job_that_succeeds_is_told_from_start_to_end) {
    assert_story(0, "exit 0", BEGINNING " WORKER:SUCCEEDED WORKER:SUCCEEDED AGENT:SUCCEEDED");
}

TEST(a_failure_is_told_of_the_worker_that_failed) {
    assert_story(0, "test $RANK = 1 && exit 3; exec sleep 100",
        BEGINNING " WORKER:TERMINATED WORKER:FAILED AGENT:SUCCEEDED");
}

TEST(a_restart_begins_with_another_rendezvous) {
    assert_story(1, "test $TORCHELASTIC_RESTART_COUNT = 1",
        BEGINNING " " BEGINNING " WORKER:SUCCEEDED WORKER:SUCCEEDED AGENT:SUCCEEDED");
}

TEST(an_agent_whose_events_cannot_be_written_does_not_start) {
    struct agent_fixture fixture;
    agent_fixture_init(&fixture, 1, "touch $DIR/started");
    fixture.config.event_handler = LAUNCH_EVENTS_FILE;
    fixture.config.event_file = memory_duplicate_string("/nowhere/events");
    struct log_sink *sink = log_sink_new("CRITICAL", STDERR_FILENO);
    assert_int_equal(agent_run(&fixture.config, &fixture.environment, sink), 1);
    assert_false(agent_fixture_has_file(&fixture, "started"));
    log_sink_free(sink);
    agent_fixture_clear(&fixture);
}
