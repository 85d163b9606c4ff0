/* SPDX-License-Identifier: BSD-3-Clause */
/* muster/rendezvous.h by a backend of the program's own. */
#include "unit.h"

#include <unistd.h>

#include "library/rendezvous_fixture.h"

FIXTURE_TEST(nodes_meet_by_a_backend_of_their_own) {
    struct seen *one = add_by_backend(fixture, 3, 3);
    struct seen *two = add_by_backend(fixture, 3, 3);
    struct seen *three = add_by_backend(fixture, 3, 3);
    ask(one);
    ask(two);
    ask(three);
    await_round(fixture, one, 1);
    await_round(fixture, two, 1);
    await_round(fixture, three, 1);
    assert_int_equal(one->info.rank + two->info.rank + three->info.rank, 3);
    assert_int_equal(three->info.world_size, 3);
    assert_string_equal(two->prefix, "torch.rendezvous.job.0");
    assert_null(one->info.store_host);
    assert_null(one->info.master_addr);
}

FIXTURE_TEST(record_is_one_that_torchelastic_reads) {
    struct seen *one = add_by_backend(fixture, 1, 1);
    ask(one);
    await_round(fixture, one, 1);
    const char *name = "torch.distributed.elastic.rendezvous.dynamic_rendezvous";
    assert_non_null(memmem(fixture->memory.state, fixture->memory.length, name, strlen(name)));
}

FIXTURE_TEST(node_that_was_not_needed_ends_gracefully) {
    struct seen *one = add_by_backend(fixture, 1, 1);
    ask(one);
    await_round(fixture, one, 1);
    struct seen *spare = add_by_backend(fixture, 1, 1);
    int before = fixture->memory.version;
    ask(spare);
    await(fixture, &fixture->memory.version, before + 1); /* it is on the redundancy list */
    assert_int_equal(muster_rendezvous_set_closed(one->rendezvous, NULL), MUSTER_OK);
    await(fixture, &spare->answers, 1);
    assert_int_equal(spare->error, MUSTER_ERROR_GRACEFUL_EXIT);
}

FIXTURE_TEST(node_that_falls_silent_is_missed) {
    for (int i = 0; i < 2; i++) {
        struct muster_rendezvous_settings settings = settings_of(fixture, 1, 2);
        settings.endpoint = NULL;
        settings.backend = &fixture->backend;
        settings.keep_alive_interval = 0.1;
        settings.last_call_timeout = 10; /* the round is complete with both */
        ask(add_node(fixture, &settings));
    }
    struct seen *one = &fixture->nodes[0];
    await_round(fixture, one, 1);
    await_round(fixture, &fixture->nodes[1], 1);
    drop(&fixture->nodes[1]);
    await(fixture, &one->rounds_over, 1);
    ask(one);
    await_round(fixture, one, 2);
    assert_int_equal(one->info.world_size, 1);
}

FIXTURE_TEST(backend_that_is_away_is_tried_again) {
    fixture->memory.trouble = MUSTER_ERROR_SYSTEM;
    fixture->memory.troubles = 3;
    struct seen *one = add_by_backend(fixture, 1, 1);
    ask(one);
    await_round(fixture, one, 1);
    fixture->memory.troubles = 2;
    assert_int_equal(muster_rendezvous_set_closed(one->rendezvous, NULL), MUSTER_OK);
    assert_int_equal(fixture->memory.troubles, 0);
}

FIXTURE_TEST(backend_that_stays_away_is_a_connection_error) {
    const struct muster_rendezvous_info *info;
    struct muster_failure failure = {0};
    fixture->memory.trouble = MUSTER_ERROR_DISCONNECTED;
    fixture->memory.troubles = 1000000;
    struct muster_rendezvous_settings settings = settings_of(fixture, 1, 1);
    settings.endpoint = NULL;
    settings.backend = &fixture->backend;
    settings.join_timeout = 0.1;
    struct seen *one = add_node(fixture, &settings);
    assert_int_equal(
        muster_rendezvous_next(one->rendezvous, 0, &info, &failure), MUSTER_ERROR_DISCONNECTED);
    assert_string_equal(failure.message, "memory: the disk is away");
}

FIXTURE_TEST(node_reads_the_record_of_its_backend_before_its_first_round) {
    int is_closed = 9;
    size_t waiting = 9;
    struct seen *looker = add_by_backend(fixture, 1, 1);
    assert_int_equal(
        muster_rendezvous_num_nodes_waiting(looker->rendezvous, &waiting, NULL), MUSTER_OK);
    assert_int_equal(waiting, 0);
    assert_int_equal(fixture->memory.gets, 1);
    assert_int_equal(fixture->memory.version, 0);
    struct seen *one = add_by_backend(fixture, 1, 1);
    ask(one);
    await_round(fixture, one, 1);
    assert_int_equal(muster_rendezvous_set_closed(one->rendezvous, NULL), MUSTER_OK);
    assert_int_equal(muster_rendezvous_is_closed(looker->rendezvous, &is_closed, NULL), MUSTER_OK);
    assert_int_equal(is_closed, 1);
}

FIXTURE_TEST(look_at_a_backend_that_fails_is_its_error_at_once) {
    const struct muster_rendezvous_info *info = NULL;
    struct muster_failure failure = {0};
    int is_closed = 9;
    fixture->memory.trouble = MUSTER_ERROR_SYSTEM;
    fixture->memory.troubles = 1;
    struct seen *one = add_by_backend(fixture, 1, 1);
    assert_int_equal(muster_rendezvous_is_closed(one->rendezvous, &is_closed, &failure),
        MUSTER_ERROR_DISCONNECTED);
    assert_string_equal(failure.message, "memory: the disk is away");
    assert_int_equal(is_closed, 9);
    fixture->memory.trouble = MUSTER_ERROR_PROTOCOL;
    fixture->memory.troubles = 1;
    assert_int_equal(
        muster_rendezvous_is_closed(one->rendezvous, &is_closed, &failure), MUSTER_ERROR_PROTOCOL);
    assert_int_equal(muster_rendezvous_next(one->rendezvous, 0, &info, NULL), MUSTER_OK);
}

static enum muster_error forget_state(void *context, const void *state, size_t length,
    const void *token, size_t token_length, struct muster_rendezvous_record *record,
    struct muster_failure *failure) {
    struct memory *memory = context;
    if (memory->version > 0) {
        return set_state(context, state, length, token, token_length, record, failure);
    }
    memory->version = 1; /* of the next one */
    memory->state = malloc(length);
    assert_non_null(memory->state);
    memcpy(memory->state, state, length);
    memory->length = length;
    return MUSTER_OK;
}

/* TorchElastic's handler does, too. A node that took it for a lost write would try once more. */
FIXTURE_TEST(node_goes_on_with_what_it_wrote_where_set_state_has_no_answer) {
    fixture->backend.set_state = forget_state;
    struct seen *one = add_by_backend(fixture, 1, 1);
    ask(one);
    await_round(fixture, one, 1);
    assert_int_equal(one->info.world_size, 1);
    assert_int_equal(fixture->memory.version, 1);
}

FIXTURE_TEST(damaged_record_is_a_state_error) {
    const struct muster_rendezvous_info *info;
    struct muster_failure failure = {0};
    fixture->memory.version = 1;
    fixture->memory.is_damaged = 1;
    struct seen *one = add_by_backend(fixture, 1, 1);
    assert_int_equal(
        muster_rendezvous_next(one->rendezvous, 0, &info, &failure), MUSTER_ERROR_PROTOCOL);
    assert_non_null(strstr(failure.message, "memory: its record"));
    assert_int_equal(fixture->memory.version, 1); /* it is left as it is */
}

/* Its descriptor is the context here, which only `changed` uses: the record stays absent. */
static int changes;

static void drain(void *context) {
    char byte;
    const int *fd = context;
    assert_int_equal(read(*fd, &byte, 1), 1);
    changes++;
}

static enum muster_error get_nothing(
    void *context, struct muster_rendezvous_record *record, struct muster_failure *failure) {
    (void)context;
    (void)record;
    (void)failure;
    return MUSTER_OK;
}

TEST(watch_of_a_backend_is_read_by_the_program) {
    struct fixture fixture;
    int fds[2];
    set_up(&fixture);
    assert_int_equal(pipe(fds), 0);
    fixture.backend.get_state = get_nothing;
    fixture.backend.context = &fds[0];
    fixture.backend.has_watch = 1;
    fixture.backend.watch_fd = fds[0];
    fixture.backend.changed = drain;
    (void)add_by_backend(&fixture, 1, 1);
    assert_int_equal(write(fds[1], "c", 1), 1);
    await(&fixture, &changes, 1);
    tear_down(&fixture);
    close(fds[0]);
    close(fds[1]);
}

/* The program frees the rendezvous when it is asked for the record the third time: the backend may
 * be gone then. */
static enum muster_error free_at_the_third(
    void *context, struct muster_rendezvous_record *record, struct muster_failure *failure) {
    struct fixture *fixture = context;
    (void)record;
    (void)failure;
    if (++fixture->memory.gets == 3) {
        drop(&fixture->nodes[0]);
    }
    return MUSTER_OK;
}

static enum muster_error lose_to_nobody(void *context, const void *state, size_t length,
    const void *token, size_t token_length, struct muster_rendezvous_record *record,
    struct muster_failure *failure) {
    (void)state;
    (void)length;
    (void)token;
    (void)token_length;
    return free_at_the_third(context, record, failure);
}

FIXTURE_TEST(backend_of_a_freed_rendezvous_is_asked_no_more) {
    const struct muster_rendezvous_info *info;
    fixture->backend.get_state = free_at_the_third;
    fixture->backend.set_state = lose_to_nobody;
    fixture->backend.context = fixture;
    struct seen *one = add_by_backend(fixture, 1, 1);
    assert_int_equal(
        muster_rendezvous_next(one->rendezvous, 0, &info, NULL), MUSTER_ERROR_CANCELLED);
    assert_int_equal(fixture->memory.gets, 3);
}
