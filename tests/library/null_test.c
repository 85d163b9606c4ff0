/* SPDX-License-Identifier: BSD-3-Clause */
/* Each function of libmuster is handed nothing: that is an error, and nothing else happens. The
 * list is whole: tools/check_library.py compares it with the headers. */
#include "unit.h"

#include <errno.h>

#include <muster/agent.h>
#include <muster/health.h>
#include <muster/local_timer.h>
#include <muster/metrics.h>
#include <muster/rendezvous.h>
#include <muster/rendezvous_state.h>
#include <muster/store.h>
#include <muster/store_server.h>
#include <muster/timer_server.h>

/* The reason is told, and may be left out. `call` ends with a place for `failure`. */
#define ASSERT_INVALID(call)                                                                       \
    do {                                                                                           \
        struct muster_failure told = {0};                                                          \
        struct muster_failure *failure = &told;                                                    \
        assert_int_equal(call, MUSTER_ERROR_INVALID);                                              \
        assert_int_equal(told.error, MUSTER_ERROR_INVALID);                                        \
        assert_string_not_equal(told.message, "");                                                 \
        failure = NULL;                                                                            \
        assert_int_equal(call, MUSTER_ERROR_INVALID);                                              \
    } while (0)

#define ASSERT_ERRNO(call, expected)                                                               \
    do {                                                                                           \
        errno = 0;                                                                                 \
        assert_true((call) == (expected));                                                         \
        assert_int_equal(errno, EINVAL);                                                           \
    } while (0)

TEST(errors_and_metrics) {
    assert_string_equal(muster_error_text((enum muster_error)12345), "unknown");
    assert_string_not_equal(muster_version(), "");
    ASSERT_INVALID(muster_metric_format(NULL, NULL, 0, NULL, failure));
}

TEST(agents) {
    ASSERT_INVALID(muster_agent_start(NULL, NULL, failure));
    ASSERT_INVALID(muster_agent_worker_group(NULL, NULL, failure));
    ASSERT_INVALID(muster_agent_run(NULL, NULL, failure));
    ASSERT_INVALID(muster_agent_process(NULL, failure));
    ASSERT_INVALID(muster_agent_pid(NULL, NULL, failure));
    ASSERT_INVALID(muster_agent_stop(NULL, 0, failure));
    ASSERT_INVALID(muster_agent_kill(NULL, failure));
    ASSERT_INVALID(muster_agent_result(NULL, NULL, failure));
    assert_int_equal(muster_agent_fd(NULL), -1);
    muster_agent_free(NULL);
}

TEST(health_servers) {
    ASSERT_INVALID(muster_health_server_new(NULL, NULL, failure));
    ASSERT_INVALID(muster_health_server_process(NULL, failure));
    assert_int_equal(muster_health_server_port(NULL), -1);
    assert_int_equal(muster_health_server_fd(NULL), -1);
    muster_health_server_free(NULL);
}

TEST(local_timers) {
    struct muster_local_timer_queue *queue = muster_local_timer_queue_new();
    assert_non_null(queue);
    ASSERT_ERRNO(muster_local_timer_acquire(queue, NULL, 1), -1);
    ASSERT_ERRNO(muster_local_timer_release(queue, NULL), -1);
    ASSERT_ERRNO(muster_local_timer_queue_hand_on(queue, NULL, 0), -1);
    muster_local_timer_queue_free(queue);
    ASSERT_ERRNO(muster_local_timer_acquire(NULL, "scope", 1), -1);
    ASSERT_ERRNO(muster_local_timer_release(NULL, "scope"), -1);
    ASSERT_ERRNO(muster_local_timer_queue_hand_on(NULL, NULL, 0), -1);
    assert_null(muster_local_timer_queue_open("")); /* NULL names the variable */
    ASSERT_ERRNO(muster_local_timer_queue_get(NULL, 1, 0, NULL, NULL), 0);
    assert_int_equal(muster_local_timer_queue_size(NULL), 0);
    muster_local_timer_queue_free(NULL);
}

TEST(local_timer_scopes) {
    struct muster_local_timer_scope scope = muster_local_timer_scope_begin(NULL, NULL, 1);
    muster_local_timer_scope_end(&scope);
    muster_local_timer_scope_end(NULL);
}

TEST(local_timer_servers) {
    struct muster_local_timer_queue *queue = muster_local_timer_queue_new();
    struct muster_local_timer_server *server = muster_local_timer_server_new(queue);
    assert_non_null(server);
    ASSERT_ERRNO(muster_local_timer_register(server, NULL), -1);
    ASSERT_ERRNO(muster_local_timer_expired(server, NULL), 0);
    ASSERT_ERRNO(muster_local_timer_reap(server, NULL), -1);
    muster_local_timer_server_free(server);
    muster_local_timer_queue_free(queue);
    ASSERT_ERRNO(muster_local_timer_server_new(NULL), NULL);
    ASSERT_ERRNO(muster_local_timer_server_fd(NULL), -1);
    ASSERT_ERRNO(muster_local_timer_serve(NULL, 0, NULL), 0);
    ASSERT_ERRNO(muster_local_timer_register(NULL, NULL), -1);
    ASSERT_ERRNO(muster_local_timer_expired(NULL, NULL), 0);
    ASSERT_ERRNO(muster_local_timer_reap(NULL, NULL), -1);
    ASSERT_ERRNO(muster_local_timer_count(NULL), 0);
    muster_local_timer_clear(NULL, 1);
    muster_local_timer_server_free(NULL);
}

TEST(rendezvous) {
    ASSERT_INVALID(muster_rendezvous_new(NULL, NULL, failure));
    ASSERT_INVALID(muster_rendezvous_register(NULL, NULL, NULL, failure));
    ASSERT_INVALID(muster_rendezvous_next(NULL, 0, NULL, failure));
    ASSERT_INVALID(muster_rendezvous_submit_next(NULL, NULL, NULL, failure));
    ASSERT_INVALID(muster_rendezvous_is_closed(NULL, NULL, failure));
    ASSERT_INVALID(muster_rendezvous_set_closed(NULL, failure));
    ASSERT_INVALID(muster_rendezvous_num_nodes_waiting(NULL, NULL, failure));
    ASSERT_INVALID(muster_rendezvous_shutdown(NULL, failure));
    ASSERT_INVALID(muster_rendezvous_process(NULL, failure));
    assert_int_equal(muster_rendezvous_fd(NULL), -1);
    assert_null(muster_rendezvous_run_id(NULL));
    muster_rendezvous_free(NULL);
    ASSERT_INVALID(muster_rendezvous_state_get(NULL, NULL, NULL, failure));
    ASSERT_INVALID(muster_rendezvous_state_read(NULL, 0, NULL, failure));
    muster_rendezvous_state_free(NULL);
}

TEST(stores) {
    ASSERT_INVALID(muster_store_new_tcp(NULL, NULL, failure));
    ASSERT_INVALID(muster_store_new_file(NULL, NULL, failure));
    ASSERT_INVALID(muster_store_new_prefix(NULL, NULL, NULL, failure));
    ASSERT_INVALID(muster_store_connect(NULL, failure));
    ASSERT_INVALID(muster_store_set_timeout(NULL, 1, failure));
    ASSERT_INVALID(muster_store_submit(NULL, NULL, NULL, NULL, failure));
    ASSERT_INVALID(muster_store_call(NULL, NULL, NULL, NULL, failure));
    ASSERT_INVALID(muster_store_process(NULL, failure));
    assert_true(muster_store_timeout(NULL) < 0);
    assert_int_equal(muster_store_fd(NULL), -1);
    muster_store_free(NULL);
    muster_bytes_clear(NULL);
}

TEST(requests_of_no_store) {
    const struct muster_slice none = {0};
    ASSERT_INVALID(muster_store_set(NULL, NULL, NULL, 0, failure));
    ASSERT_INVALID(muster_store_get(NULL, NULL, NULL, failure));
    ASSERT_INVALID(muster_store_add(NULL, NULL, 1, NULL, failure));
    ASSERT_INVALID(muster_store_append(NULL, NULL, NULL, 0, failure));
    ASSERT_INVALID(muster_store_compare_set(NULL, NULL, none, none, NULL, failure));
    ASSERT_INVALID(muster_store_check(NULL, NULL, 0, NULL, failure));
    ASSERT_INVALID(muster_store_wait(NULL, NULL, 0, 1, failure));
    ASSERT_INVALID(muster_store_delete_key(NULL, NULL, NULL, failure));
    ASSERT_INVALID(muster_store_num_keys(NULL, NULL, failure));
    ASSERT_INVALID(muster_store_barrier(NULL, 1, "k", 1, failure));
    ASSERT_INVALID(muster_store_get_all(NULL, 0, "k", 1, 1, &(struct muster_bytes){0}, failure));
    ASSERT_INVALID(
        muster_store_synchronize(NULL, "1", 1, 0, 1, "k", 1, &(struct muster_bytes){0}, failure));
    ASSERT_INVALID(muster_store_multi_get(NULL, NULL, 0, NULL, failure));
    ASSERT_INVALID(muster_store_multi_set(NULL, NULL, NULL, 0, failure));
    ASSERT_INVALID(muster_store_queue_push(NULL, NULL, NULL, 0, failure));
    ASSERT_INVALID(muster_store_queue_pop(NULL, NULL, 0, NULL, failure));
    ASSERT_INVALID(muster_store_queue_len(NULL, NULL, NULL, failure));
}

TEST(store_servers) {
    ASSERT_INVALID(muster_store_server_new(NULL, NULL, failure));
    ASSERT_INVALID(muster_store_server_process(NULL, failure));
    assert_int_equal(muster_store_server_port(NULL), -1);
    assert_int_equal(muster_store_server_fd(NULL), -1);
    muster_store_server_free(NULL);
}

TEST(timer_servers) {
    ASSERT_INVALID(muster_timer_server_new(NULL, NULL, failure));
    ASSERT_INVALID(muster_timer_server_start(NULL, failure));
    ASSERT_INVALID(muster_timer_server_stop(NULL, failure));
    ASSERT_INVALID(muster_timer_server_process(NULL, failure));
    ASSERT_INVALID(muster_timer_server_clear(NULL, 1, failure));
    ASSERT_INVALID(muster_timer_server_last_progress_time(NULL, NULL, failure));
    ASSERT_INVALID(muster_timer_server_count(NULL, NULL, failure));
    ASSERT_INVALID(muster_timer_server_register(NULL, 1, "scope", 1, 9, failure));
    ASSERT_INVALID(muster_timer_server_each_expired(NULL, 1, NULL, NULL, failure));
    assert_int_equal(muster_timer_is_process_running(0), 0);
    ASSERT_INVALID(muster_timer_server_list(NULL, NULL, NULL, failure));
    assert_int_equal(muster_timer_server_fd(NULL), -1);
    muster_timer_server_free(NULL);
}
