/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "host/log/log_sink.h"

static void check(struct status_line *status, const char *line, int width, const char *expected) {
    struct text out = {0};
    status_line_show(status, line, width, &out);
    assert_string_equal(text_string(&out), expected);
    text_clear(&out);
}

static void line_takes_the_place_of_the_one_before(void **state) {
    (void)state;
    struct status_line status = {0};
    check(&status, NULL, 80, "");
    check(&status, "abc", 80, "\rabc");
    check(&status, "x", 80, "\rx  ");
    check(&status, "yz", 80, "\ryz");
    check(&status, NULL, 0, "\r  \r");
    check(&status, NULL, 80, "");
}

static void line_never_wraps(void **state) {
    (void)state;
    struct status_line status = {0};
    check(&status, "abcdef", 5, "\rabcd");
    check(&status, "b\303\266\303\266\303\266m", 4, "\rb\303\266\303\266 ");
    check(&status, "a", 1, "\r   ");
}

static void line_is_one_line(void **state) {
    (void)state;
    struct status_line status = {0};
    check(&status, "a\nb\x1b[2Jc\200", 80, "\ra?b?[2Jc?");
}

/* What was written to the terminal so far. */
static void assert_terminal(int terminal, const char *expected) {
    struct text text = {0};
    while (text.length < strlen(expected)) {
        char buffer[256];
        ssize_t count = read(terminal, buffer, sizeof buffer);
        assert_true(count > 0);
        text_append_bytes(&text, buffer, (size_t)count);
    }
    assert_string_equal(text_string(&text), expected);
    text_clear(&text);
}

static void other_text_takes_the_line_away_first(void **state) {
    (void)state;
    int terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (terminal < 0) {
        SKIP_BECAUSE("no pseudo-terminal can be made here (mount devpts at /dev/pts)");
    }
    assert_int_equal(grantpt(terminal) | unlockpt(terminal), 0);
    int fd = open(ptsname(terminal), O_RDWR | O_NOCTTY | O_CLOEXEC);
    assert_true(fd >= 0);
    const struct winsize size = {.ws_row = 24, .ws_col = 9};
    assert_int_equal(ioctl(fd, TIOCSWINSZ, &size), 0);
    assert_int_equal(status_line_width(fd), 9);
    struct log_sink *sink = log_sink_new(NULL, fd);
    assert_true(log_sink_show_status(sink, "waiting for others"));
    assert_terminal(terminal, "\rwaiting ");
    log_sink_write_text(sink, "report\n");
    assert_terminal(terminal, "\r        \rreport\r\n");
    assert_true(log_sink_show_status(sink, "12"));
    assert_false(log_sink_show_status(sink, NULL));
    assert_terminal(terminal, "\r12\r  \r");
    log_sink_free(sink);
    sink = log_sink_new("ERROR", fd);
    assert_false(log_sink_show_status(sink, "12"));
    log_sink_free(sink);
    close(fd);
    close(terminal);
}

static void no_terminal_gets_no_line(void **state) {
    (void)state;
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    assert_int_equal(status_line_width(ends[1]), 0);
    struct log_sink *sink = log_sink_new(NULL, ends[1]);
    assert_false(log_sink_show_status(sink, "12"));
    char byte;
    assert_int_equal(read(ends[0], &byte, 1), -1);
    log_sink_free(sink);
    close(ends[0]);
    close(ends[1]);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(line_takes_the_place_of_the_one_before),
    cmocka_unit_test(line_never_wraps),
    cmocka_unit_test(line_is_one_line),
    cmocka_unit_test(other_text_takes_the_line_away_first),
    cmocka_unit_test(no_terminal_gets_no_line),
};

UNIT_TESTS(tests)
