/* SPDX-License-Identifier: BSD-3-Clause */
/* muster/rendezvous.h at an endpoint, as a program sees it. */
#include "unit.h"

#include <sys/wait.h>
#include <unistd.h>

#include "library/rendezvous_fixture.h"

FIXTURE_TEST(two_nodes_of_one_process_meet) {
    struct seen *one = add(fixture, 2, 2);
    struct seen *other = add(fixture, 2, 2);
    ask(one);
    ask(other);
    await_round(fixture, one, 1);
    await_round(fixture, other, 1);
    assert_int_equal(one->info.rank + other->info.rank, 1);
    assert_int_equal(one->info.world_size, 2);
    assert_int_equal(one->info.round, 0);
    assert_string_equal(one->prefix, "torch.rendezvous.job.0");
    assert_string_equal(one->prefix, other->prefix);
    assert_string_equal(one->master, "127.0.0.1");
    assert_string_equal(other->master, "127.0.0.1");
    assert_true(one->info.master_port > 0);
    assert_int_equal(one->info.master_port, other->info.master_port);
    assert_string_equal(one->info.store_host, "127.0.0.1");
    assert_int_equal(one->info.store_port, muster_store_server_port(fixture->server));
    assert_string_equal(muster_rendezvous_run_id(one->rendezvous), "job");
}

FIXTURE_TEST(first_node_serves_the_store_of_the_workers_where_it_is_to) {
    struct muster_tcp_store_settings place = MUSTER_TCP_STORE_SETTINGS;
    struct muster_store *store = NULL;
    int64_t number = 0;
    for (int i = 0; i < 2; i++) {
        struct muster_rendezvous_settings settings = settings_of(fixture, 2, 2);
        settings.use_agent_store = 1;
        ask(add_node(fixture, &settings));
    }
    await_round(fixture, &fixture->nodes[0], 1);
    await_round(fixture, &fixture->nodes[1], 1);
    place.host = fixture->nodes[0].master;
    place.port = fixture->nodes[1].info.master_port;
    assert_int_not_equal(place.port, muster_store_server_port(fixture->server));
    assert_int_equal(muster_store_new_tcp(&place, &store, NULL), MUSTER_OK);
    assert_int_equal(muster_store_add(store, "workers", 3, &number, NULL), MUSTER_OK);
    assert_int_equal(number, 3);
    muster_store_free(store);
}

struct steps {
    char text[4096];
    int count;
};

static void take_step(void *context, const struct muster_rendezvous_event *event) {
    struct steps *steps = context;
    const char *method = strrchr(event->name, '.');
    size_t length = strlen(steps->text);
    assert_string_equal(event->run_id, "job");
    assert_string_equal(event->hostname, "127.0.0.1");
    assert_string_equal(event->master_endpoint, "");
    assert_int_equal(event->pid, getpid());
    assert_non_null(method);
    if (strcmp(method, "._keep_alive") != 0) { /* of which there are as many as there is time */
        steps->count++;
        snprintf(steps->text + length, sizeof steps->text - length, "%s:%d:%d ", method + 1,
            (int)event->node_state, event->rank);
    }
}

FIXTURE_TEST(steps_of_a_node_are_told_as_torchelastics_handler_records_them) {
    struct steps steps = {0};
    const struct muster_rendezvous_info *info = NULL;
    struct muster_rendezvous_settings settings = settings_of(fixture, 1, 1);
    settings.event = take_step;
    settings.keep_alive_interval = 3600;
    settings.context = &steps;
    settings.round_over = NULL;
    struct seen *one = add_node(fixture, &settings);
    assert_int_equal(muster_rendezvous_next(one->rendezvous, 0, &info, NULL), MUSTER_OK);
    assert_int_equal(muster_rendezvous_shutdown(one->rendezvous, NULL), MUSTER_OK);
    assert_string_equal(steps.text,
        "next_rendezvous:1:-1 _add_to_participants:1:-1 _mark_rendezvous_complete:2:-1 run:1:-1 "
        "next_rendezvous:1:0 _mark_rendezvous_closed:2:-1 run:1:-1 _close:2:-1 ");
}

static void free_at_once(void *context, const struct muster_rendezvous_event *event) {
    struct seen *seen = context;
    (void)event;
    seen->rounds_over++; /* here: the calls */
    drop(seen);
}

FIXTURE_TEST(rendezvous_freed_by_who_is_told_of_a_step_tells_no_more) {
    struct muster_rendezvous_settings settings = settings_of(fixture, 1, 1);
    settings.event = free_at_once;
    struct seen *one = add_node(fixture, &settings);
    ask(one);
    while (one->rendezvous != NULL) {
        turn(fixture);
    }
    assert_int_equal(one->rounds_over, 1);
    assert_int_equal(one->answers, 0);
    fixture->count = 0;
}

/* A node that hosts the store at a free port, where others may come. It is alone in its round. */
static struct seen *add_host(struct fixture *fixture, int is_torchrun) {
    struct muster_rendezvous_settings settings = settings_of(fixture, 1, 2);
    settings.endpoint = "127.0.0.1:0";
    settings.is_host = 1;
    settings.is_torchrun = is_torchrun;
    struct seen *host = add_node(fixture, &settings);
    ask(host);
    await_round(fixture, host, 1);
    assert_int_equal(host->info.world_size, 1);
    snprintf(fixture->endpoint, sizeof fixture->endpoint, "127.0.0.1:%d", host->info.store_port);
    return host;
}

static struct seen *join_host(struct fixture *fixture, struct seen *host, int is_torchrun) {
    struct muster_rendezvous_settings settings = settings_of(fixture, 1, 2);
    settings.is_torchrun = is_torchrun;
    struct seen *other = add_node(fixture, &settings);
    ask(other);
    while (host->info.world_size < 2) {
        await(fixture, &host->rounds_over, 1);
        host->rounds_over = 0;
        ask(host);
        await_round(fixture, host, host->answers + 1);
    }
    await_round(fixture, other, 1);
    return other;
}

FIXTURE_TEST(host_is_told_at_once_that_a_node_is_gone) {
    size_t waiting = 99;
    struct seen *host = add_host(fixture, 0);
    struct seen *other = join_host(fixture, host, 0);
    assert_int_equal(
        muster_rendezvous_num_nodes_waiting(host->rendezvous, &waiting, NULL), MUSTER_OK);
    assert_int_equal(waiting, 0);
    drop(other);
    await(fixture, &host->rounds_over, 1);
    assert_string_not_equal(host->reason, "");
    assert_int_equal(
        muster_rendezvous_num_nodes_waiting(host->rendezvous, &waiting, NULL), MUSTER_OK);
    assert_int_equal(waiting, 1);
    int64_t before = host->info.round;
    ask(host);
    await_round(fixture, host, host->answers + 1);
    assert_int_equal(host->info.world_size, 1);
    assert_int_equal(host->info.rank, 0);
    assert_true(host->info.round > before);
}

FIXTURE_TEST(node_that_asks_again_begins_another_round) {
    struct seen *one = add(fixture, 2, 2);
    struct seen *other = add(fixture, 2, 2);
    ask(one);
    ask(other);
    await_round(fixture, one, 1);
    await_round(fixture, other, 1);
    ask(one);
    await(fixture, &other->rounds_over, 1);
    ask(other);
    await_round(fixture, one, 2);
    await_round(fixture, other, 2);
    assert_int_equal(one->info.round, 1);
    assert_int_equal(other->info.round, 1);
    assert_string_equal(other->prefix, "torch.rendezvous.job.1");
}

FIXTURE_TEST(closed_rendezvous_has_no_next_round) {
    int is_closed = 9;
    struct seen *one = add(fixture, 1, 1);
    ask(one);
    await_round(fixture, one, 1);
    assert_int_equal(muster_rendezvous_is_closed(one->rendezvous, &is_closed, NULL), MUSTER_OK);
    assert_int_equal(is_closed, 0);
    assert_int_equal(muster_rendezvous_set_closed(one->rendezvous, NULL), MUSTER_OK);
    assert_int_equal(muster_rendezvous_set_closed(one->rendezvous, NULL), MUSTER_OK);
    assert_int_equal(muster_rendezvous_is_closed(one->rendezvous, &is_closed, NULL), MUSTER_OK);
    assert_int_equal(is_closed, 1);
    struct seen *late = add(fixture, 1, 1);
    ask(late);
    await(fixture, &late->answers, 1);
    assert_int_equal(late->error, MUSTER_ERROR_CLOSED);
    ask(one);
    await(fixture, &one->answers, 2);
    assert_int_equal(one->error, MUSTER_ERROR_CLOSED);
}

/* Reads, and is none of the nodes. */
FIXTURE_TEST(node_reads_the_record_before_its_first_round) {
    int is_closed = 9;
    size_t waiting = 9;
    struct seen *looker = add(fixture, 1, 2);
    assert_int_equal(
        muster_rendezvous_num_nodes_waiting(looker->rendezvous, &waiting, NULL), MUSTER_OK);
    assert_int_equal(waiting, 0);
    assert_int_equal(muster_rendezvous_is_closed(looker->rendezvous, &is_closed, NULL), MUSTER_OK);
    assert_int_equal(is_closed, 0);
    struct seen *one = add(fixture, 1, 2);
    ask(one);
    await_round(fixture, one, 1);
    assert_int_equal(one->info.world_size, 1);
    assert_int_equal(muster_rendezvous_set_closed(one->rendezvous, NULL), MUSTER_OK);
    assert_int_equal(muster_rendezvous_is_closed(looker->rendezvous, &is_closed, NULL), MUSTER_OK);
    assert_int_equal(is_closed, 1);
}

FIXTURE_TEST(node_that_has_looked_takes_part_as_any_other) {
    const struct muster_rendezvous_info *info = NULL;
    int is_closed = 9;
    struct seen *one = add(fixture, 1, 1);
    assert_int_equal(muster_rendezvous_is_closed(one->rendezvous, &is_closed, NULL), MUSTER_OK);
    assert_int_equal(muster_rendezvous_next(one->rendezvous, 0, &info, NULL), MUSTER_OK);
    assert_int_equal(info->world_size, 1);
}

/* As TorchElastic's handler, which makes the store with itself. */
FIXTURE_TEST(node_that_looks_hosts_the_store_that_nobody_hosts) {
    const struct muster_rendezvous_info *info = NULL;
    int is_closed = 9;
    muster_store_server_free(fixture->server); /* its port is free now */
    fixture->server = NULL;
    struct muster_rendezvous_settings settings = settings_of(fixture, 1, 1);
    settings.is_host = 1;
    struct seen *host = add_node(fixture, &settings);
    assert_int_equal(muster_rendezvous_is_closed(host->rendezvous, &is_closed, NULL), MUSTER_OK);
    assert_int_equal(is_closed, 0);
    struct seen *outsider = add(fixture, 1, 1);
    assert_int_equal(
        muster_rendezvous_is_closed(outsider->rendezvous, &is_closed, NULL), MUSTER_OK);
    assert_int_equal(muster_rendezvous_next(host->rendezvous, 0, &info, NULL), MUSTER_OK);
}

/* The record is seen when the round is asked for, which is under way. */
FIXTURE_TEST(look_while_a_round_is_asked_for_waits_for_the_record) {
    int is_closed = 9;
    struct seen *one = add(fixture, 1, 1);
    ask(one);
    assert_int_equal(muster_rendezvous_is_closed(one->rendezvous, &is_closed, NULL), MUSTER_OK);
    assert_int_equal(is_closed, 0);
    await_round(fixture, one, 1);
}

FIXTURE_TEST(node_that_takes_no_part_can_close) {
    int is_closed = 0;
    struct seen *outsider = add(fixture, 2, 2);
    struct seen *waiting = add(fixture, 2, 2);
    ask(waiting);
    assert_int_equal(muster_rendezvous_set_closed(outsider->rendezvous, NULL), MUSTER_OK);
    await(fixture, &waiting->answers, 1);
    assert_int_equal(waiting->error, MUSTER_ERROR_CLOSED);
    assert_int_equal(
        muster_rendezvous_is_closed(outsider->rendezvous, &is_closed, NULL), MUSTER_OK);
    assert_int_equal(is_closed, 1);
}

FIXTURE_TEST(waiting_ends_when_its_time_is_up_and_goes_on_when_asked_again) {
    const struct muster_rendezvous_info *info = NULL;
    struct muster_failure failure = {0};
    struct seen *one = add(fixture, 2, 2);
    assert_int_equal(
        muster_rendezvous_next(one->rendezvous, 0.05, &info, &failure), MUSTER_ERROR_TIMEOUT);
    assert_null(info);
    struct seen *other = add(fixture, 2, 2);
    ask(other);
    while (muster_rendezvous_next(one->rendezvous, 0.05, &info, &failure) != MUSTER_OK) {
        (void)muster_rendezvous_process(other->rendezvous, NULL);
    }
    assert_int_equal(info->world_size, 2);
    await_round(fixture, other, 1);
}

FIXTURE_TEST(join_that_takes_too_long_fails) {
    const struct muster_rendezvous_info *info = NULL;
    struct muster_rendezvous_settings settings = settings_of(fixture, 2, 2);
    settings.join_timeout = 0.05;
    struct seen *one = add_node(fixture, &settings);
    assert_int_equal(muster_rendezvous_next(one->rendezvous, 0, &info, NULL), MUSTER_ERROR_TIMEOUT);
    assert_int_equal(muster_rendezvous_next(one->rendezvous, 0, &info, NULL), MUSTER_ERROR_TIMEOUT);
    muster_store_server_free(fixture->server);
    fixture->server = NULL;
    struct muster_rendezvous_settings without = settings_of(fixture, 2, 2);
    without.join_timeout = 0.05;
    struct seen *alone = add_node(fixture, &without);
    assert_int_equal(
        muster_rendezvous_next(alone->rendezvous, 0, &info, NULL), MUSTER_ERROR_DISCONNECTED);
}

/* A node of another process: it says that it is in the round, and ends when that is closed. */
static int live_elsewhere(int port_fd, int told_fd) {
    struct muster_rendezvous_settings settings = MUSTER_RENDEZVOUS_SETTINGS;
    const struct muster_rendezvous_info *info;
    struct muster_rendezvous *rendezvous;
    char endpoint[64] = "127.0.0.1:";
    if (read(port_fd, endpoint + strlen(endpoint), 8) <= 0) {
        return 1;
    }
    settings.run_id = "job";
    settings.endpoint = endpoint;
    settings.is_host = -1;
    settings.local_addr = "127.0.0.1";
    settings.min_nodes = 1;
    settings.max_nodes = 2;
    if (muster_rendezvous_new(&settings, &rendezvous, NULL) != MUSTER_OK ||
        muster_rendezvous_next(rendezvous, 0, &info, NULL) != MUSTER_OK || info->world_size != 2 ||
        write(told_fd, "", 1) != 1) {
        return 2;
    }
    int is_closed = 0;
    while (!is_closed) {
        struct pollfd polled = {.fd = muster_rendezvous_fd(rendezvous), .events = POLLIN};
        (void)poll(&polled, 1, LONG_MILLISECONDS);
        if (muster_rendezvous_is_closed(rendezvous, &is_closed, NULL) != MUSTER_OK) {
            return 3;
        }
    }
    muster_rendezvous_free(rendezvous);
    return 0;
}

FIXTURE_TEST(nodes_of_two_processes_meet_at_the_store_that_one_hosts) {
    struct muster_failure failure = {0};
    const struct muster_rendezvous_info *info = NULL;
    int ports[2];
    int told[2];
    int status = -1;
    char byte;
    assert_int_equal(pipe(ports), 0);
    assert_int_equal(pipe(told), 0);
    pid_t child = fork();
    if (child == 0) {
        _exit(live_elsewhere(ports[0], told[1]));
    }
    struct seen *host = add_host(fixture, 0);
    assert_int_equal(dprintf(ports[1], "%d", host->info.store_port) > 0, 1);
    await(fixture, &host->rounds_over, 1);
    assert_int_equal(muster_rendezvous_next(host->rendezvous, 0, &info, &failure), MUSTER_OK);
    assert_int_equal(info->world_size, 2);
    assert_int_equal(read(told[0], &byte, 1), 1);
    assert_int_equal(muster_rendezvous_shutdown(host->rendezvous, &failure), MUSTER_OK);
    assert_int_equal(muster_rendezvous_shutdown(host->rendezvous, NULL), MUSTER_ERROR_STATE);
    assert_int_equal(muster_rendezvous_next(host->rendezvous, 0, &info, NULL), MUSTER_ERROR_STATE);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    for (int i = 0; i < 2; i++) {
        close(ports[i]);
        close(told[i]);
    }
}

FIXTURE_TEST(nodes_of_torchruns_kind_meet) {
    struct seen *host = add_host(fixture, 1);
    struct seen *other = join_host(fixture, host, 1);
    assert_int_equal(host->info.rank + other->info.rank, 1);
    drop(other);
    await(fixture, &host->rounds_over, 1);
}
