/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "host/log/log_sink.h"

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

/* A terminal of nine columns, of which the last is never used. */
struct terminal {
    int master;
    int fd;
    struct log_sink *sink;
};

static void open_terminal(struct terminal *terminal) {
    terminal->master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (terminal->master < 0) {
        SKIP_BECAUSE("no pseudo-terminal can be made here (mount devpts at /dev/pts)");
    }
    assert_int_equal(grantpt(terminal->master) | unlockpt(terminal->master), 0);
    terminal->fd = open(ptsname(terminal->master), O_RDWR | O_NOCTTY | O_CLOEXEC);
    assert_true(terminal->fd >= 0);
    const struct winsize size = {.ws_row = 24, .ws_col = 9};
    assert_int_equal(ioctl(terminal->fd, TIOCSWINSZ, &size), 0);
    terminal->sink = log_sink_new(NULL, terminal->fd);
}

static void close_terminal(struct terminal *terminal) {
    log_sink_free(terminal->sink);
    close(terminal->fd);
    close(terminal->master);
}

TEST(line_takes_the_place_of_the_one_before_and_never_wraps) {
    static const struct {
        const char *line;
        const char *expected;
    } cases[] = {
        {"abc", "\rabc"},
        {"x", "\rx  "},
        {"yz", "\ryz"},
        {NULL, "\r  \r"},
        {"waiting for others", "\rwaiting "},
        {"\303\266\303\266\303\266\303\266\303\266\303\266\303\266mno",
            "\r\303\266\303\266\303\266\303\266\303\266\303\266\303\266m"},
        {"a\nb\x1b[2Jc\200", "\ra?b?[2Jc"},
        {"", "\r        "},
    };
    struct terminal terminal;
    open_terminal(&terminal);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(log_sink_show_status(terminal.sink, cases[i].line), cases[i].line != NULL);
        assert_terminal(terminal.master, cases[i].expected);
    }
    close_terminal(&terminal);
}

TEST_OF(terminal, other_text_takes_the_line_away_first, open_terminal(&fixture), close_terminal) {
    assert_true(log_sink_show_status(fixture->sink, "waiting for others"));
    assert_terminal(fixture->master, "\rwaiting ");
    log_sink_write_text(fixture->sink, "report\n");
    assert_terminal(fixture->master, "\r        \rreport\r\n");
    log_sink_free(fixture->sink);
    fixture->sink = log_sink_new("ERROR", fixture->fd);
    assert_false(log_sink_show_status(fixture->sink, "12"));
}

TEST(no_terminal_gets_no_line) {
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    struct log_sink *sink = log_sink_new(NULL, ends[1]);
    assert_false(log_sink_show_status(sink, "12"));
    char byte;
    assert_int_equal(read(ends[0], &byte, 1), -1);
    log_sink_free(sink);
    close(ends[0]);
    close(ends[1]);
}
