/* SPDX-License-Identifier: BSD-3-Clause */
/* The rows of bad input (bad_input.h) of the functions of muster/agent.h. */
#include "unit.h"

#include <signal.h>
#include <sys/wait.h>

#include "library/agent_fixture.h"
#include "library/bad_input.h"

static struct fixture fixture;
static struct muster_agent *agent;

/* Each function in each situation. */

static void (*in_callback)(void);

static void take_event(void *context, const struct muster_agent_event *event) {
    (void)context;
    (void)event;
    if (in_callback != NULL) {
        void (*play_once)(void) = in_callback;
        in_callback = NULL;
        play_once();
    }
}

static void begin(const char *command) {
    set_up(&fixture, 1, command);
    fixture.settings.event = take_event;
    fixture.settings.metric = NULL;
}

static struct muster_agent *start_one(void) {
    struct muster_agent *started = NULL;
    assert_int_equal(muster_agent_start(&fixture.settings, &started, NULL), MUSTER_OK);
    return started;
}

static void end(void) {
    muster_agent_free(agent);
    agent = NULL;
    fixture.agent = NULL;
    tear_down(&fixture);
}

/* An agent that nothing was heard of. */
static void renew(enum situation now) {
    if (now == TOO_EARLY) {
        (void)muster_agent_kill(agent, NULL);
        muster_agent_free(agent);
        agent = start_one();
    }
}

static int forget(enum situation now) {
    if (now != IS_NULL && now != FORKED) {
        agent = NULL;
    }
    return 0;
}

static struct {
    struct muster_agent_round known;
    long more; /* a field that the library does not know */
} given_round = {MUSTER_AGENT_ROUND, 1};

static long pid = -1;
static const struct muster_run_result *result;
static const struct muster_worker_group *group;

/* What has not gone well has given nothing. */
static int dropped(enum muster_error error) {
    bool is_untouched = pid == -1 && result == NULL && group == NULL;
    group = NULL;
    pid = -1;
    result = NULL;
    return error == MUSTER_OK || is_untouched ? (int)error : -1;
}

static void play(enum situation now) {
    IN_EACH(muster_agent_result, dropped(muster_agent_result(agent, &result, NULL)),
        MUSTER_ERROR_INVALID, MUSTER_ERROR_FORKED, MUSTER_ERROR_STATE, MUSTER_ERROR_STATE,
        MUSTER_ERROR_STATE, MUSTER_OK);
    IN_EACH(muster_agent_worker_group, dropped(muster_agent_worker_group(agent, &group, NULL)),
        MUSTER_ERROR_INVALID, MUSTER_ERROR_FORKED, MUSTER_ERROR_STATE, MUSTER_ERROR_STATE,
        MUSTER_ERROR_STATE, MUSTER_OK);
    IN_EACH(muster_agent_pid, dropped(muster_agent_pid(agent, &pid, NULL)), MUSTER_ERROR_INVALID,
        MUSTER_ERROR_FORKED, MUSTER_OK, MUSTER_ERROR_STATE, MUSTER_OK, MUSTER_ERROR_STATE);
    IN_EACH(muster_agent_process, dropped(muster_agent_process(agent, NULL)), MUSTER_ERROR_INVALID,
        MUSTER_ERROR_FORKED, MUSTER_ERROR_STATE, MUSTER_ERROR_STATE, MUSTER_OK, MUSTER_OK);
    IN_EACH(muster_agent_stop, dropped(muster_agent_stop(agent, 0, NULL)), MUSTER_ERROR_INVALID,
        MUSTER_ERROR_FORKED, MUSTER_OK, MUSTER_ERROR_STATE, MUSTER_OK, MUSTER_ERROR_STATE);
    IN_EACH(muster_agent_set_round,
        dropped(muster_agent_set_round(agent, &given_round.known, NULL)), MUSTER_ERROR_INVALID,
        MUSTER_ERROR_FORKED, MUSTER_ERROR_STATE, MUSTER_ERROR_STATE, MUSTER_ERROR_STATE,
        MUSTER_ERROR_STATE);
    IN_EACH(muster_agent_end_round, dropped(muster_agent_end_round(agent, "why", NULL)),
        MUSTER_ERROR_INVALID, MUSTER_ERROR_FORKED, MUSTER_ERROR_STATE, MUSTER_ERROR_STATE,
        MUSTER_ERROR_STATE, MUSTER_ERROR_STATE);
    IN_EACH(muster_agent_fd, muster_agent_fd(agent) < 0 ? -1 : 0, -1, -1, 0, -1, 0, 0);
    IN_EACH(muster_agent_kill, dropped(muster_agent_kill(agent, NULL)), MUSTER_ERROR_INVALID,
        MUSTER_ERROR_FORKED, MUSTER_OK, MUSTER_ERROR_STATE, MUSTER_OK, MUSTER_ERROR_STATE);
    IN_EACH(muster_agent_free, (muster_agent_free(agent), forget(now)), 0, 0, 0, 0, 0, 0);
}

TEST(without_an_agent) {
    play(IS_NULL);
}

TEST(in_a_child) {
    begin("while ! test -e $DIR/go; do sleep 0.01; done");
    agent = start_one();
    bad_input_play_in_child(play);
    char *path = text_format("%s/go", fixture.directory);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fclose(file);
    free(path);
    result = wait_for_result(agent);
    assert_int_equal(result->state, MUSTER_WORKER_STATE_SUCCEEDED);
    result = NULL;
    end();
}

static void play_in_callback(void) {
    struct muster_agent *own = agent;
    play(IN_CALLBACK);
    agent = own; /* it was freed, and lives until this function has returned */
    play(BEING_FREED);
    agent = NULL;
}

TEST(from_inside_a_callback_and_while_it_is_freed) {
    begin("sleep 1000");
    in_callback = play_in_callback;
    agent = start_one();
    while (agent != NULL) {
        struct pollfd ready = {.fd = muster_agent_fd(agent), .events = POLLIN};
        assert_true(poll(&ready, 1, -1) == 1);
        assert_int_equal(muster_agent_process(agent, NULL), MUSTER_OK);
    }
    end();
}

TEST(before_anything_was_heard) {
    begin("sleep 1000");
    play(TOO_EARLY);
    end();
}

TEST(after_it_has_ended) {
    begin("exit 0");
    agent = start_one();
    result = wait_for_result(agent);
    result = NULL;
    play(TOO_LATE);
    end();
}

TEST(arguments) {
    struct muster_agent *made = NULL;
    begin("sleep 1000");
    REFUSED(muster_agent_start, settings, IS_NULL, MUSTER_ERROR_INVALID,
        muster_agent_start(NULL, &made, failure));
    REFUSED(muster_agent_start, out_agent, IS_NULL, MUSTER_ERROR_INVALID,
        muster_agent_start(&fixture.settings, NULL, failure));
    assert_null(made);
    REFUSED(muster_agent_run, settings, IS_NULL, MUSTER_ERROR_INVALID,
        muster_agent_run(NULL, NULL, failure));
    agent = start_one();
    REFUSED(muster_agent_pid, out_pid, IS_NULL, MUSTER_ERROR_INVALID,
        muster_agent_pid(agent, NULL, failure));
    REFUSED(muster_agent_result, out_result, IS_NULL, MUSTER_ERROR_INVALID,
        muster_agent_result(agent, NULL, failure));
    REFUSED(muster_agent_worker_group, out_group, IS_NULL, MUSTER_ERROR_INVALID,
        muster_agent_worker_group(agent, NULL, failure));
    REFUSED(muster_agent_stop, signal, BELOW, MUSTER_ERROR_INVALID,
        muster_agent_stop(agent, -1, failure));
    REFUSED(muster_agent_stop, signal, BELOW, MUSTER_ERROR_INVALID,
        muster_agent_stop(agent, INT_MIN, failure));
    REFUSED(muster_agent_stop, signal, ABOVE, MUSTER_ERROR_INVALID,
        muster_agent_stop(agent, 65, failure));
    REFUSED(muster_agent_stop, signal, ABOVE, MUSTER_ERROR_INVALID,
        muster_agent_stop(agent, INT_MAX, failure));
    assert_int_equal(muster_agent_pid(agent, &pid, NULL), MUSTER_OK); /* nobody has ended it */
    pid = -1;
    end();
}

/* Rounds. */

static int asked;

static void ask(void *context, int restarts) {
    (void)context;
    assert_int_equal(restarts, 0);
    asked++;
}

#define ROUND(member, value)                                                                       \
    (given_round.known = good, given_round.known.member = (value),                                 \
        muster_agent_set_round(agent, &given_round.known, failure))

TEST(rounds) {
    struct muster_agent_round good = MUSTER_AGENT_ROUND;
    char *long_text = bad_input_text(1024);
    good.master_addr = "localhost";
    good.master_port = 29400;
    begin("exit 0");
    fixture.settings.next_rendezvous = ask;
    REFUSED(muster_agent_run, settings, PLACED, MUSTER_ERROR_INVALID,
        muster_agent_run(&fixture.settings, NULL, failure));
    agent = start_one();
    while (asked == 0) {
        process_once(agent);
    }
    REFUSED(muster_agent_set_round, round, IS_NULL, MUSTER_ERROR_INVALID,
        muster_agent_set_round(agent, NULL, failure));
    REFUSED(muster_agent_round, size, BELOW, MUSTER_ERROR_INVALID, ROUND(size, 0));
    REFUSED(muster_agent_round, size, BELOW, MUSTER_ERROR_INVALID, ROUND(size, sizeof good - 1));
    REFUSED(muster_agent_round, size, ABOVE, MUSTER_ERROR_INVALID, ROUND(size, SIZE_MAX));
    REFUSED(
        muster_agent_round, size, NEWER, MUSTER_ERROR_UNSUPPORTED, ROUND(size, sizeof given_round));
    REFUSED(muster_agent_round, group_rank, BELOW, MUSTER_ERROR_INVALID, ROUND(group_rank, -1));
    REFUSED(muster_agent_round, group_rank, ABOVE, MUSTER_ERROR_INVALID, ROUND(group_rank, 1));
    REFUSED(muster_agent_round, group_world_size, BELOW, MUSTER_ERROR_INVALID,
        ROUND(group_world_size, 0));
    REFUSED(muster_agent_round, group_world_size, ABOVE, MUSTER_ERROR_INVALID,
        ROUND(group_world_size, 65537));
    REFUSED(muster_agent_round, global_rank, BELOW, MUSTER_ERROR_INVALID, ROUND(global_rank, -1));
    REFUSED(muster_agent_round, global_rank, ABOVE, MUSTER_ERROR_INVALID, ROUND(global_rank, 1));
    REFUSED(muster_agent_round, world_size, BELOW, MUSTER_ERROR_INVALID, ROUND(world_size, 0));
    REFUSED(
        muster_agent_round, world_size, ABOVE, MUSTER_ERROR_INVALID, ROUND(world_size, INT_MAX));
    REFUSED(muster_agent_round, role_rank, BELOW, MUSTER_ERROR_INVALID, ROUND(role_rank, INT_MIN));
    REFUSED(muster_agent_round, role_rank, ABOVE, MUSTER_ERROR_INVALID, ROUND(role_rank, INT_MAX));
    REFUSED(muster_agent_round, role_world_size, BELOW, MUSTER_ERROR_INVALID,
        ROUND(role_world_size, 0));
    REFUSED(muster_agent_round, role_world_size, ABOVE, MUSTER_ERROR_INVALID,
        ROUND(role_world_size, (1 << 28) + 1));
    REFUSED(muster_agent_round, master_port, BELOW, MUSTER_ERROR_INVALID, ROUND(master_port, 0));
    REFUSED(
        muster_agent_round, master_port, ABOVE, MUSTER_ERROR_INVALID, ROUND(master_port, 65536));
    REFUSED(
        muster_agent_round, master_addr, IS_NULL, MUSTER_ERROR_INVALID, ROUND(master_addr, NULL));
    REFUSED(muster_agent_round, master_addr, EMPTY, MUSTER_ERROR_INVALID, ROUND(master_addr, ""));
    REFUSED(muster_agent_round, master_addr, NOT_UTF8, MUSTER_ERROR_INVALID,
        ROUND(master_addr, NO_UTF8));
    REFUSED(muster_agent_round, master_addr, TOO_LONG, MUSTER_ERROR_LIMIT,
        ROUND(master_addr, long_text));
    REFUSED(muster_agent_end_round, reason, IS_NULL, MUSTER_ERROR_INVALID,
        muster_agent_end_round(agent, NULL, failure));
    REFUSED(muster_agent_end_round, reason, EMPTY, MUSTER_ERROR_INVALID,
        muster_agent_end_round(agent, "", failure));
    REFUSED(muster_agent_end_round, reason, NOT_UTF8, MUSTER_ERROR_INVALID,
        muster_agent_end_round(agent, NO_UTF8, failure));
    REFUSED(muster_agent_end_round, reason, TOO_LONG, MUSTER_ERROR_LIMIT,
        muster_agent_end_round(agent, long_text, failure));
    given_round.known = good;
    assert_int_equal(muster_agent_set_round(agent, &given_round.known, NULL), MUSTER_OK);
    assert_int_equal(muster_agent_set_round(agent, &given_round.known, NULL), MUSTER_ERROR_STATE);
    assert_int_equal(wait_for_result(agent)->state, MUSTER_WORKER_STATE_SUCCEEDED);
    free(long_text);
    end();
}

/* A process of its own is the agent there. */
static int run_in_a_child(void) {
    pid_t child = fork();
    int status;
    assert_true(child >= 0);
    if (child == 0) {
        fixture.settings.event = NULL;
        fixture.settings.ended = NULL;
        _exit(muster_agent_run(&fixture.settings, NULL, NULL) == MUSTER_OK ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

TEST(status_of_a_run_may_be_left_out) {
    begin("exit 3");
    ALLOWED(muster_agent_run, out_status, IS_NULL, "it may be left out: muster_agent_run",
        run_in_a_child() == 0);
    end();
}

/* The last one. */
TEST(each_situation_was_played) {
    bad_input_assert_all_played();
}
