/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/watchdog/timer_queue.h"

static const struct duration no_time = {0};

static enum failure_code put(struct timer_queue *queue, const char *scope, int64_t seconds) {
    char copy[600];
    strcpy(copy, scope);
    const struct watchdog_request request = {
        .pid = 7, .scope = copy, .expiration = {seconds * 1000000000}, .signal = 9};
    return timer_queue_put(queue, &request, no_time, NULL);
}

static void note(void *context, const struct watchdog_request *request) {
    assert_int_equal(request->pid, 7);
    text_append_format(
        context, "%s@%d ", request->scope, (int)(request->expiration.nanoseconds / 1000000000));
}

TEST(requests_come_out_as_they_went_in) {
    struct timer_queue *queue;
    struct text noted = {0};
    assert_int_equal(timer_queue_new(&queue, NULL), FAILURE_NONE);
    assert_int_equal(timer_queue_size(queue), 0);
    assert_int_equal(timer_queue_get(queue, 3, no_time, note, &noted), 0);
    for (int i = 1; i <= 3; i++) {
        assert_int_equal(put(queue, i == 2 ? "second" : "other", i), FAILURE_NONE);
        assert_int_equal(timer_queue_size(queue), i);
    }
    assert_int_equal(timer_queue_get(queue, 2, DURATION_FOREVER, note, &noted), 2);
    assert_int_equal(timer_queue_get(queue, 2, no_time, note, &noted), 1);
    assert_string_equal(text_string(&noted), "other@1 second@2 other@3 ");
    text_clear(&noted);
    timer_queue_free(queue);
}

TEST(the_timeout_is_shared_by_all_that_are_waited_for) {
    struct timer_queue *queue;
    struct text noted = {0};
    assert_int_equal(timer_queue_new(&queue, NULL), FAILURE_NONE);
    assert_int_equal(put(queue, "one", 1), FAILURE_NONE);
    assert_int_equal(timer_queue_get(queue, 1000000, duration_from_seconds(0.02), note, &noted), 1);
    text_clear(&noted);
    timer_queue_free(queue);
}

TEST(a_full_queue_takes_no_more_and_loses_nothing) {
    struct timer_queue *queue;
    struct text noted = {0};
    size_t count = 0;
    assert_int_equal(timer_queue_new(&queue, NULL), FAILURE_NONE);
    while (put(queue, "s", 1) == FAILURE_NONE) {
        count++;
    }
    assert_int_equal(put(queue, "s", 1), FAILURE_TIMEOUT);
    assert_true(count > 100);
    assert_int_equal(timer_queue_size(queue), count);
    assert_int_equal(timer_queue_get(queue, count, no_time, note, &noted), count);
    assert_int_equal(put(queue, "s", 1), FAILURE_NONE);
    text_clear(&noted);
    timer_queue_free(queue);
}

TEST(scopes_have_a_longest_size) {
    struct timer_queue *queue;
    struct text noted = {0};
    char scope[TIMER_QUEUE_MAXIMUM_SCOPE + 2];
    assert_int_equal(timer_queue_new(&queue, NULL), FAILURE_NONE);
    memset(scope, 'x', sizeof scope);
    scope[sizeof scope - 1] = '\0';
    assert_int_equal(put(queue, scope, 1), FAILURE_LIMIT);
    assert_int_equal(put(queue, scope + 1, 1), FAILURE_NONE);
    assert_int_equal(timer_queue_get(queue, 1, no_time, note, &noted), 1);
    assert_int_equal(noted.length, TIMER_QUEUE_MAXIMUM_SCOPE + 3);
    text_clear(&noted);
    timer_queue_free(queue);
}
