/* SPDX-License-Identifier: BSD-3-Clause */
/* What all engines have in common, over an engine that does what each test tells it. */
#include "unit.h"

#include "base/memory.h"
#include "host/register/register.h"
#include "wire/register/register_entry_text.h"

#define NONCE "0123456789abcdef0123456789abcdef"
#define OTHER_NONCE "fffffffffffffffffffffffffffffff0"

/* The outcomes of the next requests, in order; an outcome of HANG is never answered. */
#define HANG 99
#define MOST_OUTCOMES 4

struct fixture {
    struct event_loop *loop;
    struct job_register *job_register;
    struct register_entry entry;
    int outcomes[MOST_OUTCOMES];
    size_t next_outcome;
    size_t begin_count;
    size_t cancel_count;
    struct text kept; /* what the engine says that the register holds */
    /* What was told. */
    struct text heard;
    struct failure failure;
    uint64_t cancels; /* from inside `told` */
    bool frees_the_register;
};

static struct fixture *fixture_of_engine;

static enum failure_code fake_open(struct event_loop *loop,
    const struct register_settings *settings, void **out_state, struct failure *failure) {
    (void)loop;
    *out_state = fixture_of_engine;
    return *settings->endpoint == '\0' ? failure_set(failure, FAILURE_INVALID, "no endpoint")
                                       : FAILURE_NONE;
}

static void fake_close(void *state) {
    (void)state;
}

static void fake_begin(void *state, struct register_request *request) {
    struct fixture *fixture = state;
    struct failure failure;
    fixture->begin_count++;
    int outcome = fixture->outcomes[fixture->next_outcome];
    if (fixture->next_outcome + 1 < MOST_OUTCOMES) {
        fixture->next_outcome++;
    }
    if (outcome != HANG) {
        failure_set(&failure, FAILURE_DISCONNECTED, "the line is cut");
        request->answer(request, &(struct register_result){
                                     .outcome = (enum register_outcome)outcome,
                                     .text = slice_from_string(text_string(&fixture->kept)),
                                     .place = "PLACE",
                                     .note = "NOTE",
                                     .failure = &failure,
                                     .is_final = true,
                                 });
    }
}

static void fake_cancel(void *state, struct register_request *request) {
    struct fixture *fixture = state;
    (void)request;
    fixture->cancel_count++;
}

static const struct register_engine fake_engine = {
    .name = "fake",
    .open = fake_open,
    .close = fake_close,
    .begin = fake_begin,
    .cancel = fake_cancel,
};

static void told(void *context, const struct register_event *event) {
    static const char *const names[] = {[REGISTER_READ] = "read",
        [REGISTER_WON] = "won",
        [REGISTER_LOST] = "lost",
        [REGISTER_UNKNOWN] = "unknown",
        [REGISTER_RENEWED] = "renewed",
        [REGISTER_RENEWAL] = "renewal",
        [REGISTER_FAILED] = "failed"};
    struct fixture *fixture = context;
    text_append_format(&fixture->heard, "%d:%s", (int)event->request, names[event->kind]);
    if (event->entry != NULL) {
        text_append_format(&fixture->heard, "(%d)", (int)event->entry->number);
    }
    if (event->renewal != NULL) {
        text_append_format(&fixture->heard, "(%s)", event->renewal);
    }
    text_append_format(&fixture->heard, "%s ", event->is_final ? "!" : "");
    if (event->failure != NULL) {
        fixture->failure = *event->failure;
    }
    if (fixture->cancels != 0) {
        register_cancel(fixture->job_register, fixture->cancels);
    }
    if (fixture->frees_the_register) {
        register_free(fixture->job_register);
        fixture->job_register = NULL;
    }
}

static void set_up(struct fixture *fixture) {
    *fixture = (struct fixture){
        .entry =
            {
                .number = 2,
                .kind = REGISTER_ENTRY_CLAIM,
                .term = 1,
                .host = memory_duplicate_string("h"),
                .addresses = memory_duplicate_string(""),
                .settings = memory_duplicate_string(""),
                .nonce = NONCE,
            },
    };
    fixture_of_engine = fixture;
    assert_int_equal(event_loop_new(&fixture->loop, NULL), FAILURE_NONE);
    const struct register_settings settings = {
        .endpoint = "there", .run_id = "job", .node_name = "node", .observer = {told, fixture}};
    assert_int_equal(
        register_open(fixture->loop, &fake_engine, &settings, &fixture->job_register, NULL),
        FAILURE_NONE);
}

static void tear_down(struct fixture *fixture) {
    register_free(fixture->job_register);
    assert_true(event_loop_free(fixture->loop));
    register_entry_clear(&fixture->entry);
    text_clear(&fixture->kept);
    text_clear(&fixture->heard);
}

/* Until nothing is under way. */
static void expect_heard(struct fixture *fixture, const char *heard) {
    event_loop_run(fixture->loop);
    assert_string_equal(text_string(&fixture->heard), heard);
}

static void keep(struct fixture *fixture, int64_t number, const char *nonce) {
    struct register_entry entry;
    register_entry_copy(&fixture->entry, &entry);
    entry.number = number;
    memcpy(entry.nonce, nonce, sizeof entry.nonce);
    text_clear(&fixture->kept);
    register_entry_write(&entry, &fixture->kept);
    register_entry_clear(&entry);
}

static struct instant after(const struct fixture *fixture, int64_t milliseconds) {
    return instant_after(event_loop_now(fixture->loop), duration_from_milliseconds(milliseconds));
}

static struct instant far(const struct fixture *fixture) {
    return after(fixture, 3600000);
}

TEST(engines_have_names) {
    assert_string_equal(register_engine_named("dir")->name, "dir");
    assert_null(register_engine_named("c10d"));
}

TEST(endpoint_that_cannot_be_used_does_not_open) {
    struct event_loop *loop;
    struct job_register *reg;
    const struct register_settings settings = {.endpoint = "", .run_id = "", .node_name = ""};
    assert_int_equal(event_loop_new(&loop, NULL), FAILURE_NONE);
    assert_int_equal(register_open(loop, &fake_engine, &settings, &reg, NULL), FAILURE_INVALID);
    assert_true(event_loop_free(loop));
}

FIXTURE_TEST(nothing_is_told_from_inside_a_call) {
    assert_int_equal(register_read(fixture->job_register, far(fixture)), 1);
    assert_int_equal(register_renew(fixture->job_register, 1, far(fixture)), 2);
    assert_string_equal(text_string(&fixture->heard), "");
    event_loop_run(fixture->loop);
    assert_non_null(strstr(text_string(&fixture->heard), "1:read "));
    assert_non_null(strstr(text_string(&fixture->heard), "2:renewed "));
}

FIXTURE_TEST(last_entry_is_read) {
    keep(fixture, 7, OTHER_NONCE);
    register_read(fixture->job_register, far(fixture));
    expect_heard(fixture, "1:read(7) ");
}

FIXTURE_TEST(foreign_entry_is_told_of_with_its_place) {
    text_append(&fixture->kept, "hello");
    register_read(fixture->job_register, far(fixture));
    expect_heard(fixture, "1:failed! ");
    assert_string_equal(fixture->failure.message,
        "PLACE cannot be used as an entry of this job's register: it is no JSON; give the job "
        "another --rdzv-id or --rdzv-endpoint, or remove what is there");
}

FIXTURE_TEST(append_is_won_or_lost) {
    register_append(fixture->job_register, &fixture->entry, far(fixture));
    expect_heard(fixture, "1:won ");
    fixture->outcomes[fixture->next_outcome] = REGISTER_OUTCOME_LOST;
    keep(fixture, 2, OTHER_NONCE);
    register_append(fixture->job_register, &fixture->entry, far(fixture));
    expect_heard(fixture, "1:won 2:lost(2) ");
}

FIXTURE_TEST(own_entry_is_won_though_the_reply_was_lost) {
    fixture->outcomes[0] = REGISTER_OUTCOME_UNKNOWN;
    fixture->outcomes[1] = REGISTER_OUTCOME_UNKNOWN;
    fixture->outcomes[2] = REGISTER_OUTCOME_LOST;
    keep(fixture, 2, NONCE);
    register_append(fixture->job_register, &fixture->entry, far(fixture));
    expect_heard(fixture, "1:won ");
    assert_int_equal(fixture->begin_count, 3);
}

FIXTURE_TEST(later_entry_means_lost) {
    fixture->outcomes[0] = REGISTER_OUTCOME_UNKNOWN;
    fixture->outcomes[1] = REGISTER_OUTCOME_LOST;
    keep(fixture, 3, OTHER_NONCE);
    register_append(fixture->job_register, &fixture->entry, far(fixture));
    expect_heard(fixture, "1:lost(3) ");
}

FIXTURE_TEST(stale_entry_is_no_answer_to_an_append) {
    fixture->outcomes[0] = REGISTER_OUTCOME_LOST;
    fixture->outcomes[1] = REGISTER_OUTCOME_DONE;
    keep(fixture, 1, OTHER_NONCE);
    register_append(fixture->job_register, &fixture->entry, far(fixture));
    expect_heard(fixture, "1:won ");
    assert_int_equal(fixture->begin_count, 2);
}

FIXTURE_TEST(append_without_a_word_is_unknown_at_its_deadline) {
    fixture->outcomes[0] = REGISTER_OUTCOME_UNKNOWN;
    fixture->outcomes[1] = HANG;
    register_append(fixture->job_register, &fixture->entry, after(fixture, 60));
    expect_heard(fixture, "1:unknown ");
    assert_string_equal(fixture->failure.message, "the line is cut");
}

FIXTURE_TEST(request_without_a_word_fails_at_its_deadline) {
    fixture->outcomes[0] = HANG;
    register_read(fixture->job_register, after(fixture, 1));
    expect_heard(fixture, "1:failed ");
    assert_int_equal(fixture->failure.code, FAILURE_TIMEOUT);
    assert_non_null(strstr(fixture->failure.message, "--rdzv-backend fake"));
    assert_int_equal(fixture->cancel_count, 1);
}

FIXTURE_TEST(failure_of_the_engine_is_told) {
    fixture->outcomes[0] = REGISTER_OUTCOME_FAILED;
    register_append(fixture->job_register, &fixture->entry, far(fixture));
    expect_heard(fixture, "1:failed! ");
    assert_string_equal(fixture->failure.message, "the line is cut");
}

FIXTURE_TEST(renewal_is_told_as_it_is) {
    text_append(&fixture->kept, "17");
    register_renewal(fixture->job_register, 1, far(fixture));
    expect_heard(fixture, "1:renewal(17) ");
}

FIXTURE_TEST(cancelled_request_gets_no_answer) {
    fixture->outcomes[0] = HANG;
    register_cancel(fixture->job_register, register_read(fixture->job_register, far(fixture)));
    assert_int_equal(fixture->cancel_count, 1);
    register_cancel(fixture->job_register, register_read(fixture->job_register, far(fixture)));
    register_cancel(fixture->job_register, 17);
    expect_heard(fixture, "");
    assert_int_equal(fixture->cancel_count, 1);
}

FIXTURE_TEST(request_may_be_cancelled_where_another_is_told) {
    fixture->outcomes[1] = HANG;
    register_renewal(fixture->job_register, 1, far(fixture));
    fixture->cancels = register_read(fixture->job_register, far(fixture));
    expect_heard(fixture, "1:renewal() ");
    assert_int_equal(fixture->cancel_count, 1);
}

FIXTURE_TEST(register_may_be_freed_where_it_tells) {
    fixture->outcomes[1] = HANG;
    fixture->frees_the_register = true;
    register_read(fixture->job_register, far(fixture));
    register_read(fixture->job_register, far(fixture));
    expect_heard(fixture, "1:read ");
    assert_int_equal(fixture->cancel_count, 1);
}
