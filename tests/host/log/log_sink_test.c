/* SPDX-License-Identifier: BSD-3-Clause */
#include "log_fixture.h"

#include <regex.h>

#include "host/log/log_sink.h"
#include "host/log/log_thread.h"

static void assert_matches(const char *text, const char *pattern) {
    regex_t expression;
    assert_int_equal(regcomp(&expression, pattern, REG_EXTENDED | REG_NOSUB), 0);
    int result = regexec(&expression, text, 0, NULL, 0);
    regfree(&expression);
    assert_int_equal(result, 0);
}

TEST(a_record_has_time_pid_and_origin) {
    struct fake_console console = open_fake_console();
    struct log_sink *sink = log_sink_new(NULL, console.write_fd);
    log_warning(log_sink_log(sink), "worker %d is gone", 3);
    char pattern[256];
    snprintf(pattern, sizeof pattern,
        "^W[0-9]{4} [0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3}000 %d "
        "muster/.*log_sink_test.c:[0-9]+\\] worker 3 is gone\n$",
        (int)getpid());
    assert_matches(look_at(&console), pattern);
    log_sink_free(sink);
    close_fake_console(&console);
}

TEST(the_level_decides_what_is_written) {
    static const struct {
        const char *level;
        const char *letters;
    } cases[] = {{NULL, "WE"}, {"ERROR", "E"}, {"INFO", "IWE"}, {"DEBUG", "VIWE"}, {"30", "WE"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct fake_console console = open_fake_console();
        struct log_sink *sink = log_sink_new(cases[i].level, console.write_fd);
        const struct log *log = log_sink_log(sink);
        log_debug(log, "x");
        log_info(log, "x");
        log_warning(log, "x");
        log_error(log, "x");
        struct text letters = {0};
        for (const char *line = look_at(&console); *line != '\0'; line = strchr(line, '\n') + 1) {
            text_append_bytes(&letters, line, 1);
        }
        assert_string_equal(text_string(&letters), cases[i].letters);
        text_clear(&letters);
        log_sink_free(sink);
        close_fake_console(&console);
    }
}

TEST(a_level_that_is_none_is_said) {
    struct fake_console console = open_fake_console();
    struct log_sink *sink = log_sink_new("LOUD", console.write_fd);
    assert_non_null(strstr(look_at(&console), "LOGLEVEL is LOUD"));
    log_sink_free(sink);
    close_fake_console(&console);
}

TEST(text_is_written_as_it_is) {
    struct fake_console console = open_fake_console();
    struct log_sink *sink = log_sink_new("CRITICAL", console.write_fd);
    log_sink_write_text(sink, "a report\nof two lines\n");
    assert_string_equal(look_at(&console), "a report\nof two lines\n");
    log_sink_free(sink);
    close_fake_console(&console);
}

TEST(a_closed_stderr_is_no_trouble) {
    signal(SIGPIPE, SIG_IGN);
    struct fake_console console = open_fake_console();
    close(console.read_fd);
    console.read_fd = -1;
    struct log_sink *sink = log_sink_new(NULL, console.write_fd);
    log_warning(log_sink_log(sink), "nobody reads this");
    log_sink_free(sink);
    close_fake_console(&console);
}

/* Records that do not fit are lost. Only the first of them waits for stderr. */
TEST(a_stuck_stderr_loses_records) {
    struct fake_console console = open_fake_console();
    assert_true(fcntl(console.write_fd, F_SETPIPE_SZ, 4096) >= 4096);
    struct log_sink *sink = log_sink_new(NULL, console.write_fd);
    for (int i = 0; i < 1000; i++) {
        log_warning(log_sink_log(sink), "record %d of a thousand", i);
    }
    assert_non_null(strstr(look_at(&console), "record 0 of a thousand\n"));
    assert_null(strstr(look_at(&console), "record 999 of a thousand\n"));
    log_warning(log_sink_log(sink), "there is room again");
    assert_non_null(strstr(look_at(&console), "there is room again\n"));
    log_sink_free(sink);
    close_fake_console(&console);
}

static void stop_loop(void *context) {
    event_loop_stop(context);
}

TEST(records_keep_their_order_through_a_thread) {
    struct fake_console console = open_fake_console();
    struct event_loop *loop;
    struct failure failure;
    assert_int_equal(event_loop_new(&loop, &failure), FAILURE_NONE);
    struct log_sink *sink = log_sink_new(NULL, console.write_fd);
    log_sink_write_text(sink, "before\n");
    const struct log_thread_settings settings = {.loop = loop,
        .log = log_sink_log(sink),
        .stdout_fd = console.write_fd,
        .stderr_fd = console.write_fd,
        .patience = duration_from_seconds(60)};
    struct log_thread *thread;
    assert_int_equal(log_thread_new(&settings, &thread, &failure), FAILURE_NONE);
    log_sink_use_thread(sink, thread);
    log_sink_write_text(sink, "through the thread\n");
    log_thread_drain(thread, DURATION_FOREVER, stop_loop, loop);
    event_loop_run(loop);
    log_sink_use_thread(sink, NULL);
    log_thread_free(thread);
    log_sink_write_text(sink, "after\n");
    assert_string_equal(look_at(&console), "before\nthrough the thread\nafter\n");
    log_sink_free(sink);
    assert_true(event_loop_free(loop));
    close_fake_console(&console);
}
