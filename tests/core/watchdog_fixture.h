/* SPDX-License-Identifier: BSD-3-Clause */
/* A watchdog machine, the events that it takes, and its effects as one line of text. Times are in
 * milliseconds. Both clocks show the same time. */
#ifndef MUSTER_TESTS_WATCHDOG_FIXTURE_H
#define MUSTER_TESTS_WATCHDOG_FIXTURE_H

#include "unit.h"

#include <inttypes.h>
#include <stdio.h>

#include "core/watchdog/watchdog.h"

struct watchdog_fixture {
    struct watchdog_machine *machine;
    int64_t now;
    struct text effects; /* of the last step */
};

static inline void watchdog_fixture_append_names(
    const struct watchdog_expiry *expiry, struct text *out) {
    for (size_t i = 0; i < expiry->scopes.count; i++) {
        text_append_format(out, ":%s", expiry->scopes.items[i]);
    }
}

static inline void watchdog_fixture_append_notice(
    const struct watchdog_notice *notice, struct text *out) {
    static const char *const names[] = {
        [WATCHDOG_NOTICE_STARTED] = "started",
        [WATCHDOG_NOTICE_STOPPED] = "stopped",
        [WATCHDOG_NOTICE_EXPIRED] = "expired",
        [WATCHDOG_NOTICE_SIGNALLED] = "signalled",
        [WATCHDOG_NOTICE_LOOKS_BEGUN] = "looks_begun",
        [WATCHDOG_NOTICE_LOOK] = "look",
        [WATCHDOG_NOTICE_LOOKS_OVER] = "looks_over",
        [WATCHDOG_NOTICE_AGENT_TO_END] = "agent_to_end",
    };
    text_append(out, names[notice->kind]);
    if (notice->expiry != NULL) {
        text_append_format(out, " %" PRId64, notice->expiry->pid);
        watchdog_fixture_append_names(notice->expiry, out);
    }
    if (notice->kind == WATCHDOG_NOTICE_LOOK || notice->kind == WATCHDOG_NOTICE_SIGNALLED) {
        text_append_format(out, " rank=%d", notice->owner);
    }
    if (notice->kind == WATCHDOG_NOTICE_LOOK) {
        text_append_format(out, " bound=%" PRId64, notice->bound.nanoseconds / 1000000);
    }
}

static inline void watchdog_fixture_append_complaint(
    const struct watchdog_effect *effect, struct text *out) {
    if (effect->kind == WATCHDOG_EFFECT_TELL_BAD_LINE) {
        text_append_format(out, "bad_line %s held_back=%" PRIu64, effect->complaint.reason,
            effect->complaint.held_back);
    } else {
        text_append_format(out, "refused %s%s", effect->complaint.request->scope,
            effect->complaint.is_limit ? " limit" : "");
    }
}

static inline void watchdog_fixture_append_effect(
    const struct watchdog_effect *effect, struct text *out) {
    text_append(out, out->length == 0 ? "" : ", ");
    switch (effect->kind) {
    case WATCHDOG_EFFECT_LOOK_UP:
        text_append_format(out, "look_up %" PRId64 "%s", effect->look_up.pid,
            effect->look_up.is_asking ? " asking" : "");
        break;
    case WATCHDOG_EFFECT_WATCH:
        text_append_format(out, "watch %" PRId64, effect->pid);
        break;
    case WATCHDOG_EFFECT_SIGNAL:
        text_append_format(out, "signal %" PRId64 "/%" PRIu64 " %d", effect->signal.pid,
            effect->signal.start_time, effect->signal.signal);
        break;
    case WATCHDOG_EFFECT_UNWATCH:
        text_append_format(out, "unwatch %" PRId64, effect->pid);
        break;
    case WATCHDOG_EFFECT_UNWATCH_ALL:
        text_append(out, "unwatch_all");
        break;
    case WATCHDOG_EFFECT_DROP_INPUT:
        text_append(out, "drop_input");
        break;
    case WATCHDOG_EFFECT_ARM_DEADLINE:
        text_append_format(out, "deadline %" PRId64, effect->deadline.nanoseconds / 1000000);
        break;
    case WATCHDOG_EFFECT_DISARM_DEADLINE:
        text_append(out, "no_deadline");
        break;
    case WATCHDOG_EFFECT_ARM_TIMER:
        text_append_format(out, "timer %" PRId64, effect->when.nanoseconds / 1000000);
        break;
    case WATCHDOG_EFFECT_DISARM_TIMER:
        text_append(out, "no_timer");
        break;
    case WATCHDOG_EFFECT_TELL_BAD_LINE:
    case WATCHDOG_EFFECT_TELL_REFUSED:
        watchdog_fixture_append_complaint(effect, out);
        break;
    case WATCHDOG_EFFECT_TELL_TOO_LATE:
        text_append_format(out, "too_late %" PRId64, effect->pid);
        break;
    case WATCHDOG_EFFECT_TELL_ENDED:
        text_append_format(out, "ended %" PRId64, effect->pid);
        break;
    case WATCHDOG_EFFECT_TELL_GONE:
        text_append_format(out, "gone %" PRId64, effect->expiry->pid);
        break;
    case WATCHDOG_EFFECT_TELL_LIVES_ON:
        text_append_format(out, "lives_on %" PRId64, effect->expiry->pid);
        break;
    case WATCHDOG_EFFECT_TELL_UNTOUCHED:
        text_append_format(out, "untouched %" PRId64, effect->expiry->pid);
        break;
    case WATCHDOG_EFFECT_NOTIFY:
        watchdog_fixture_append_notice(&effect->notice, out);
        break;
    }
}

/* Takes one event. Returns its effects as text, which is valid until the next event. */
static inline const char *watchdog_fixture_step(
    struct watchdog_fixture *fixture, struct watchdog_event event) {
    struct watchdog_effects effects;
    event.now.nanoseconds = fixture->now * 1000000;
    event.wall_now.nanoseconds = fixture->now * 1000000;
    watchdog_machine_step(fixture->machine, &event, &effects);
    text_clear(&fixture->effects);
    for (size_t i = 0; i < effects.count; i++) {
        watchdog_fixture_append_effect(&effects.items[i], &fixture->effects);
    }
    return text_string(&fixture->effects);
}

static inline const char *watchdog_fixture_happens(
    struct watchdog_fixture *fixture, enum watchdog_event_kind kind) {
    return watchdog_fixture_step(fixture, (struct watchdog_event){.kind = kind});
}

static inline const char *watchdog_fixture_happens_to(
    struct watchdog_fixture *fixture, enum watchdog_event_kind kind, int64_t pid) {
    return watchdog_fixture_step(fixture, (struct watchdog_event){.kind = kind, .pid = pid});
}

static const struct watchdog_settings plain = {.maximum_ancestors = 4};

static inline void watchdog_fixture_init(
    struct watchdog_fixture *fixture, struct watchdog_settings settings) {
    *fixture = (struct watchdog_fixture){.now = 1000, .machine = watchdog_machine_new(&settings)};
    watchdog_fixture_happens(fixture, WATCHDOG_EVENT_BEGIN);
}

static inline void watchdog_fixture_clear(struct watchdog_fixture *fixture) {
    watchdog_machine_free(fixture->machine);
    text_clear(&fixture->effects);
}

/* Answers LOOK_UP with a process that was started at `start_time`. */
static inline const char *watchdog_fixture_see(
    struct watchdog_fixture *fixture, uint64_t start_time, int owner) {
    return watchdog_fixture_step(fixture,
        (struct watchdog_event){.kind = WATCHDOG_EVENT_SEEN, .seen = {true, start_time, 1, owner}});
}

static inline const char *watchdog_fixture_signalled(
    struct watchdog_fixture *fixture, enum watchdog_signal_result result) {
    return watchdog_fixture_step(
        fixture, (struct watchdog_event){.kind = WATCHDOG_EVENT_SIGNALLED, .result = result});
}

static inline const char *watchdog_fixture_watched(
    struct watchdog_fixture *fixture, bool is_there) {
    return watchdog_fixture_step(
        fixture, (struct watchdog_event){.kind = WATCHDOG_EVENT_WATCHED, .is_there = is_there});
}

/* A request for a timer. The process is not admitted yet. */
static inline const char *watchdog_fixture_ask(
    struct watchdog_fixture *fixture, int64_t pid, const char *scope, int64_t when, int signal) {
    static struct watchdog_request request; /* borrowed until the questions are answered */
    static char scope_copy[32];
    snprintf(scope_copy, sizeof scope_copy, "%s", scope);
    request =
        (struct watchdog_request){WATCHDOG_ACQUIRE, pid, scope_copy, {when * 1000000}, signal};
    return watchdog_fixture_step(
        fixture, (struct watchdog_event){.kind = WATCHDOG_EVENT_REQUEST, .request = &request});
}

/* The same for a process that is then admitted: it belongs to worker `pid` - 100, and its start
 * time is `pid`. */
static inline const char *watchdog_fixture_hold(
    struct watchdog_fixture *fixture, int64_t pid, const char *scope, int64_t when, int signal) {
    watchdog_fixture_ask(fixture, pid, scope, when, signal);
    watchdog_fixture_see(fixture, (uint64_t)pid, (int)pid - 100);
    return watchdog_fixture_watched(fixture, true);
}

/* A test that is given a fixture (unit.h). */
#define WATCHDOG_TEST(name) WATCHDOG_TEST_AFTER(name, watchdog_fixture_init(&fixture, plain))
#define WATCHDOG_TEST_AFTER(name, beginning)                                                       \
    TEST_OF(watchdog_fixture, name, beginning, watchdog_fixture_clear)

#endif
