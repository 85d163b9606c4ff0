/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <stdlib.h>

#include "agent/telling/agent_health.h"
#include "base/memory.h"
#include "host/http_client.h"
#include "host/remembered_log.h"

#define SECOND INT64_C(1000000000)

struct fixture {
    struct event_loop *loop;
    struct launch_config config;
    struct agent_preparation preparation;
    struct agent_machine machine;
    struct remembered_log log;
    struct agent_health *health;
    int64_t silent_seconds;
};

static struct wall_time last_progress(void *context) {
    const struct fixture *fixture = context;
    int64_t now = event_loop_wall_time(fixture->loop).nanoseconds;
    return (struct wall_time){now - fixture->silent_seconds * SECOND};
}

static void write_metrics(void *context, struct text *out) {
    (void)context;
    text_append(out, "a_metric 1\n");
}

static void set_up(struct fixture *fixture, int port) {
    *fixture = (struct fixture){.config = {.serves_health = true,
                                    .health_port = port,
                                    .max_restarts = 3,
                                    .health_timeout = {60 * SECOND}},
        .preparation = {.worker_count = 2}};
    fixture->config.health_address = memory_duplicate_string("127.0.0.1");
    fixture->preparation.run_id = memory_duplicate_string("job7");
    remembered_log_init(&fixture->log);
    agent_machine_init(
        &fixture->machine, &(struct agent_settings){.worker_count = 2, .max_restarts = 3});
    assert_int_equal(event_loop_new(&fixture->loop, NULL), FAILURE_NONE);
    struct agent_health_settings settings = {&fixture->config, &fixture->preparation,
        &fixture->machine, &fixture->log.log, last_progress, write_metrics, fixture};
    fixture->health = agent_health_new(fixture->loop, &settings);
}

static void tear_down(struct fixture *fixture) {
    agent_health_free(fixture->health);
    assert_true(event_loop_free(fixture->loop));
    agent_machine_clear(&fixture->machine);
    agent_preparation_clear(&fixture->preparation);
    launch_config_clear(&fixture->config);
    text_clear(&fixture->log.text);
}

static int served_port(const struct fixture *fixture) {
    const char *number = strstr(text_string(&fixture->log.text), "on port ");
    assert_non_null(number);
    return atoi(number + strlen("on port "));
}

static void assert_health(struct fixture *fixture, const char *status, const char *member) {
    struct text answer = {0};
    http_ask(fixture->loop, served_port(fixture), "GET /health HTTP/1.1", &answer);
    assert_true(text_starts_with(text_string(&answer), status));
    assert_non_null(strstr(text_string(&answer), member));
    text_clear(&answer);
}

FIXTURE_TEST_AFTER(a_watchdog_that_stands_still_is_503, set_up(&fixture, 0)) {
    fixture->machine.phase = AGENT_RUNNING;
    fixture->silent_seconds = 100;
    assert_health(fixture, "HTTP/1.1 503 ", "\"status\": \"stalled\"");
    fixture->silent_seconds = 0;
    assert_health(fixture, "HTTP/1.1 200 ", "\"status\": \"alive\"");
}
