/* SPDX-License-Identifier: BSD-3-Clause */
/* Serves the page of one job to whoever has its key. The job is asked when the page is, and not
 * more often than once a second, however many look. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "host/loop/clock.h"
#include "host/loop/event_loop.h"
#include "host/network/health_endpoint.h"
#include "main/command.h"
#include "main/telling/job_report.h"
#include "main/telling/page_text.h"
#include "main/telling/report_command.h"
#include "main/telling/status_command.h"
#include "options/argparse/option_parser.h"
#include "options/launch/option_values.h"

#define KEY_BYTES 16
#define BEARER "Bearer "
#define FRESH_SECONDS 1
/* Without a look for so long the page ends, when the job has. */
#define LINGER_SECONDS 60
#define LOOK_SECONDS 10
/* Of a job that was followed; above this the oldest are in its files only. */
#define ENTRIES_MAXIMUM ((size_t)1 << 18)

static const struct option_definition definitions[] = {
    OPTION_DEFINITION_HELP,
    {.destination = "listen",
        .names = {"--listen"},
        .default_text = "127.0.0.1:0",
        .help = "ADDRESS:PORT to serve the page at; port 0 takes a free one. Default: 127.0.0.1:0, "
                "which only this machine reaches."},
    JOB_ENDPOINT_OPTION_DEFINITIONS,
    {.destination = "job",
        .arity = OPTION_ARITY_OPTIONAL,
        .help = "The job's --rdzv-id, where several jobs run here."},
};

static const struct option_table table = {
    .description =
        "Serve a page that shows how a job stands, and print its address, which has the key. It "
        "asks as `muster status` does, while somebody looks. It ends with Ctrl-C, or a minute "
        "after the job has ended and nobody looks.",
    .definitions = definitions,
    .definition_count = sizeof definitions / sizeof *definitions,
};

static const struct health_header headers[] = {
    {"Content-Security-Policy", page_text_policy},
    {"X-Content-Type-Options", "nosniff"},
    {"Referrer-Policy", "no-referrer"},
    {"X-Frame-Options", "DENY"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
    {"Cross-Origin-Opener-Policy", "same-origin"},
};

struct dashboard {
    struct inquiry *inquiry;
    struct event_loop *loop;
    struct health_endpoint *endpoint;
    struct event_timer *timer;
    char key[2 * KEY_BYTES + 1];
    struct text data; /* what the page got last */
    struct instant asked;
    struct instant looked;
    bool is_over;
    bool has_asked;
};

static void write_data(
    struct dashboard *dashboard, struct chronicle_status *status, const struct text *json) {
    const struct job_report report = {.inquiry = dashboard->inquiry,
        .status = status,
        .status_json = text_string(json),
        .is_live = !dashboard->is_over};
    text_clear(&dashboard->data);
    job_report_append_data(&report, &dashboard->data);
}

/* Agents that are gone have left their files. */
static void ask(struct dashboard *dashboard) {
    struct inquiry *inquiry = dashboard->inquiry;
    struct chronicle_status status = {0};
    struct failure failure = {0};
    struct text json = {0};
    struct duration age = instant_until(dashboard->asked, event_loop_now(dashboard->loop));
    if (dashboard->is_over ||
        (dashboard->has_asked &&
            age.nanoseconds < duration_from_seconds(FRESH_SECONDS).nanoseconds)) {
        return;
    }
    if (inquiry->is_of_host || inquiry->count >= ENTRIES_MAXIMUM) {
        job_inquiry_begin_again(inquiry); /* what the host told is no part of what agents tell */
    }
    if (dashboard->has_asked && inquiry->endpoint.host == NULL &&
        !job_inquiry_ask(inquiry, &failure)) {
        job_inquiry_read_rest(inquiry);
        dashboard->is_over = true;
    }
    if (report_job_ask(inquiry, &status, &json, &failure)) {
        dashboard->is_over = dashboard->is_over || status.state == JOB_ENDED;
        write_data(dashboard, &status, &json);
        chronicle_status_clear(&status);
    } else {
        text_clear(&dashboard->data);
        fprintf(stderr, "%s: %s\n", inquiry->program, failure.message);
    }
    dashboard->has_asked = true;
    dashboard->asked = event_loop_now(dashboard->loop);
    text_clear(&json);
}

/* Takes as long for a wrong key as for the right one. */
static bool has_key(const struct dashboard *dashboard, const char *authorization) {
    size_t length = strlen(BEARER) + strlen(dashboard->key);
    unsigned char difference = 0;
    if (authorization == NULL || strlen(authorization) != length ||
        strncmp(authorization, BEARER, strlen(BEARER)) != 0) {
        return false;
    }
    for (size_t i = 0; i < strlen(dashboard->key); i++) {
        difference |= (unsigned char)(authorization[strlen(BEARER) + i] ^ dashboard->key[i]);
    }
    return difference == 0;
}

static void answer_data(struct dashboard *dashboard, struct health_answer *answer) {
    dashboard->looked = event_loop_now(dashboard->loop);
    ask(dashboard);
    if (dashboard->data.length == 0) {
        answer->status = 503;
        text_append(&answer->body, "the job cannot be asked now\n");
        return;
    }
    answer->status = 200;
    answer->content_type = "application/json";
    text_append_bytes(&answer->body, text_string(&dashboard->data), dashboard->data.length);
}

static void answer(void *context, const char *path, struct health_answer *answer) {
    struct dashboard *dashboard = context;
    answer->headers = headers;
    answer->header_count = sizeof headers / sizeof *headers;
    if (text_equals(path, "/")) {
        answer->status = 200;
        answer->content_type = "text/html; charset=utf-8";
        job_report_append_page(NULL, &answer->body);
    } else if (!has_key(dashboard, answer->authorization)) {
        answer->status = 401;
        text_append(&answer->body, "the key is missing or wrong; open the address that muster "
                                   "dashboard has printed\n");
    } else if (text_equals(path, "/v1/page")) {
        answer_data(dashboard, answer);
    } else {
        answer->status = 404;
        text_append(&answer->body, "there are / and /v1/page\n");
    }
}

static void look(void *context) {
    struct dashboard *dashboard = context;
    struct instant now = event_loop_now(dashboard->loop);
    struct duration unseen = instant_until(dashboard->looked, now);
    if (unseen.nanoseconds >= duration_from_seconds(LINGER_SECONDS).nanoseconds) {
        bool was_over = dashboard->is_over;
        ask(dashboard);
        if (was_over) {
            printf("the job is over, and nobody looks\n");
            event_loop_stop(dashboard->loop);
            return;
        }
        dashboard->looked = dashboard->is_over ? now : dashboard->looked;
    }
    event_timer_set(dashboard->timer, instant_after(now, duration_from_seconds(LOOK_SECONDS)));
}

static void stop(void *context, int signal) {
    struct dashboard *dashboard = context;
    (void)signal;
    event_loop_stop(dashboard->loop);
}

static bool make_key(char *out) {
    unsigned char bytes[KEY_BYTES];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes) {
        return false;
    }
    for (size_t i = 0; i < sizeof bytes; i++) {
        snprintf(out + 2 * i, 3, "%02x", bytes[i]);
    }
    return true;
}

static bool parse_listen(struct option_result *result, struct endpoint *out_endpoint) {
    const char *text = option_result_text(result, "listen");
    struct text reason = {0};
    bool is_valid = endpoint_parse(text, out_endpoint, &reason) == FAILURE_NONE;
    if (!is_valid) {
        option_result_reject(
            result, "listen", "must be ADDRESS:PORT, as 127.0.0.1:0 (a free port): '%s'", text);
    }
    text_clear(&reason);
    return is_valid;
}

static int serve(struct dashboard *dashboard, const struct endpoint *at) {
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    struct failure failure = {0};
    struct signal_watch *watch = NULL;
    const char *host = text_equals(at->host, "localhost") ? "127.0.0.1" : at->host;
    const struct health_endpoint_settings settings = {.address = host,
        .port = at->port > 0 ? at->port : 0,
        .answer = answer,
        .context = dashboard};
    if (event_loop_new(&dashboard->loop, &failure) != FAILURE_NONE ||
        signal_watch_new(dashboard->loop, signals, sizeof signals / sizeof *signals, stop,
            dashboard, &watch, &failure) != FAILURE_NONE ||
        health_endpoint_new(dashboard->loop, &settings, &dashboard->endpoint, &failure) !=
            FAILURE_NONE) {
        fprintf(stderr, "%s: error: --listen: %s\n", dashboard->inquiry->program, failure.message);
    } else {
        const char *braces = strchr(host, ':') != NULL ? "[]" : "";
        signal_watch_ignore_write_signals();
        dashboard->timer = event_timer_new(dashboard->loop, look, dashboard);
        dashboard->looked = event_loop_now(dashboard->loop);
        look(dashboard);
        printf("http://%.1s%s%s:%d/#%s\n", braces, host, *braces != '\0' ? braces + 1 : "",
            health_endpoint_port(dashboard->endpoint), dashboard->key);
        fflush(stdout);
        event_loop_run(dashboard->loop);
    }
    bool was_served = dashboard->endpoint != NULL;
    health_endpoint_free(dashboard->endpoint);
    event_timer_free(dashboard->timer);
    signal_watch_free(watch);
    (void)event_loop_free(dashboard->loop);
    return was_served ? EXIT_SUCCESS : EXIT_FAILURE;
}

int dashboard_command(const struct text_list *arguments, const struct text_list *environment) {
    struct inquiry inquiry = {.program = "muster dashboard"};
    struct dashboard dashboard = {.inquiry = &inquiry};
    struct endpoint at = {0};
    struct option_result result;
    int code = EXIT_FAILURE;
    option_parse(&table, inquiry.program, arguments, environment, &result);
    if (result.outcome != OPTION_OUTCOME_VALUES || !parse_listen(&result, &at)) {
        code = command_print(&result);
    } else if (!make_key(dashboard.key)) {
        fprintf(stderr, "%s: error: the kernel gives no random key\n", inquiry.program);
    } else if (status_command_open(&inquiry, &result, option_result_value(&result, "job")->text,
                   environment, &code)) {
        code = serve(&dashboard, &at);
    }
    endpoint_clear(&at);
    text_clear(&dashboard.data);
    option_result_clear(&result);
    job_inquiry_clear(&inquiry);
    return code;
}
