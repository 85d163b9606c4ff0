/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/telling/agent_audience.h"

#include <stdlib.h>

#include "base/memory.h"
#include "core/telling/job_metrics.h"
#include "host/telling/program_channel.h"
#include "wire/telling/agent_line.h"

struct agent_audience {
    struct agent_audience_settings settings;
    struct event_loop *loop;
    struct program_channel *channel; /* NULL: lines go to a function */
    struct metric_stream metrics;
};

static void tell(struct agent_audience *audience, struct text *lines, bool may_be_lost) {
    if (audience->channel != NULL) {
        program_channel_tell(audience->channel, text_string(lines), may_be_lost);
    } else {
        audience->settings.tell(audience->settings.tell_context, text_string(lines));
    }
    text_clear(lines);
}

static void tell_metric(void *context, const struct metric *metric) {
    struct text line = {0};
    agent_line_write_metric(metric, &line);
    tell(context, &line, true);
}

static void take_order(void *context, const void *message) {
    const struct agent_audience *audience = context;
    const struct agent_audience_order *order = message;
    audience->settings.told(audience->settings.context, order->kind, &order->told);
}

static void take_request(void *context, int signal) {
    const struct agent_audience *audience = context;
    audience->settings.asked(audience->settings.context, signal);
}

enum failure_code agent_audience_new(struct event_loop *loop,
    const struct agent_audience_settings *settings, const struct launch_config *config,
    struct agent_audience **out_audience, struct failure *failure) {
    struct agent_audience *audience = memory_allocate(sizeof *audience);
    audience->settings = *settings;
    audience->loop = loop;
    audience->metrics = (struct metric_stream){
        .role = config->role,
        .max_restarts = config->max_restarts,
        .sink = {tell_metric, audience},
    };
    enum failure_code code = FAILURE_NONE;
    if (settings->tell == NULL) {
        const struct program_channel_settings channel = {settings->channel, settings->program,
            take_request, take_order, sizeof(struct agent_audience_order), audience};
        code = program_channel_new(loop, &channel, &audience->channel, failure);
    }
    if (code != FAILURE_NONE) {
        free(audience);
        return code;
    }
    *out_audience = audience;
    return FAILURE_NONE;
}

void agent_audience_free(struct agent_audience *audience) {
    if (audience != NULL) {
        program_channel_free(audience->channel);
        free(audience);
    }
}

void agent_audience_event(struct agent_audience *audience, const char *record) {
    if (audience != NULL) {
        struct text line = {0};
        agent_line_write_event(record, &line);
        tell(audience, &line, true);
    }
}

void agent_audience_group(struct agent_audience *audience, const struct run_group *group) {
    if (audience != NULL) {
        struct text line = {0};
        agent_line_write_group(group, &line);
        tell(audience, &line, true);
    }
}

void agent_audience_ask(struct agent_audience *audience, enum membership_ask what, int attempt) {
    if (audience != NULL) {
        struct text line = {0};
        agent_line_write_ask(what == MEMBERSHIP_ASK_BARRIER, attempt, &line);
        tell(audience, &line, false);
    }
}

void agent_audience_step(struct agent_audience *audience, enum agent_phase before,
    const struct agent_machine *machine, const struct agent_event *event) {
    if (audience != NULL) {
        metric_stream_step(
            &audience->metrics, before, machine, event, event_loop_wall_time(audience->loop));
    }
}

void agent_audience_end(struct agent_audience *audience, const struct agent_machine *machine,
    const struct agent_outcome *outcome) {
    if (audience != NULL) {
        metric_stream_end(&audience->metrics, machine, outcome, event_loop_now(audience->loop),
            event_loop_wall_time(audience->loop));
    }
}

void agent_audience_result(struct agent_audience *audience, const struct run_result *result) {
    if (audience != NULL) {
        struct text lines = {0};
        agent_line_write_result(result, &lines);
        tell(audience, &lines, false);
    }
}
