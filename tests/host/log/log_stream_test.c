/* SPDX-License-Identifier: BSD-3-Clause */
#include "log_fixture.h"

#include "host/log/log_stream.h"

static const struct instant start = {.nanoseconds = 1000000000};

struct opened {
    struct log_stream *stream;
    int worker_fd;
    char path[128];
};

static struct opened open_stream(void) {
    struct opened opened;
    struct failure failure;
    assert_int_equal(log_stream_open(path_in(opened.path, "stdout.log"), "[0]:", &opened.stream,
                         &opened.worker_fd, &failure),
        FAILURE_NONE);
    return opened;
}

#define WITH_DIRECTORY(test) TEST_WITH(test, make_directory, remove_directory)

WITH_DIRECTORY(the_worker_gets_a_blocking_end_that_it_does_not_leak) {
    struct opened opened = open_stream();
    assert_int_equal(fcntl(opened.worker_fd, F_GETFL) & O_NONBLOCK, 0);
    assert_int_equal(fcntl(opened.worker_fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    assert_int_equal(fcntl(opened.stream->pipe_fd, F_GETFL) & O_NONBLOCK, O_NONBLOCK);
    assert_int_equal(fcntl(opened.stream->pipe_fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    close(opened.worker_fd);
    log_stream_free(opened.stream);
}

WITH_DIRECTORY(a_failed_opening_leaves_nothing_open) {
    char path[128];
    size_t before = count_open_descriptors();
    struct log_stream *stream = NULL;
    int fd = -1;
    struct failure failure;
    assert_int_equal(
        log_stream_open(path_in(path, "no/such/directory"), "", &stream, &fd, &failure),
        FAILURE_SYSTEM);
    assert_null(stream);
    assert_int_equal(fd, -1);
    assert_non_null(strstr(failure.message, path));
    assert_int_equal(count_open_descriptors(), before);
}

WITH_DIRECTORY(without_descriptors_the_failure_names_the_file) {
    char path[128];
    struct rlimit before;
    getrlimit(RLIMIT_NOFILE, &before);
    size_t open_now = count_open_descriptors();
    int next = dup(STDIN_FILENO);
    assert_true(next >= 0);
    close(next);
    setrlimit(RLIMIT_NOFILE, &(struct rlimit){(rlim_t)next + 1, before.rlim_max});
    struct log_stream *stream = NULL;
    int fd = -1;
    struct failure failure;
    enum failure_code code =
        log_stream_open(path_in(path, "stdout.log"), "", &stream, &fd, &failure);
    setrlimit(RLIMIT_NOFILE, &before);
    assert_int_equal(code, FAILURE_SYSTEM);
    assert_int_equal(failure.system_error, EMFILE);
    assert_non_null(strstr(failure.message, path));
    assert_int_equal(count_open_descriptors(), open_now);
}

WITH_DIRECTORY(one_read_takes_no_more_than_the_buffer) {
    struct opened opened = open_stream();
    uint8_t buffer[4];
    write_all(opened.worker_fd, "0123456789");
    assert_true(log_stream_read(opened.stream, buffer, sizeof buffer, start));
    assert_file(opened.path, "0123");
    assert_true(log_stream_read(opened.stream, buffer, sizeof buffer, start));
    assert_true(log_stream_read(opened.stream, buffer, sizeof buffer, start));
    assert_true(log_stream_read(opened.stream, buffer, sizeof buffer, start));
    assert_file(opened.path, "0123456789");
    close(opened.worker_fd);
    assert_false(log_stream_read(opened.stream, buffer, sizeof buffer, start));
    log_stream_free(opened.stream);
}

WITH_DIRECTORY(ending_takes_what_the_pipe_holds) {
    struct opened opened = open_stream();
    uint8_t buffer[4];
    write_all(opened.worker_fd, "the last words");
    log_stream_end(opened.stream, buffer, sizeof buffer, start);
    assert_file(opened.path, "the last words");
    assert_int_equal(write(opened.worker_fd, "x", 1), -1);
    assert_int_equal(errno, EPIPE);
    close(opened.worker_fd);
    log_stream_free(opened.stream);
}

/* A feed whose console is stuck, so that lines must be found again in the file. */
struct stuck {
    struct event_loop *loop;
    struct fake_console pipe;
    struct console_feed *feed;
};

static void ignore_move(void *context) {
    (void)context;
}

static void ignore_failure(void *context, int system_error, bool is_closed) {
    (void)context;
    (void)system_error;
    (void)is_closed;
}

static struct stuck open_stuck(void) {
    struct stuck stuck = {.pipe = open_fake_console()};
    const struct console_feed_events events = {ignore_move, ignore_failure, NULL};
    struct failure failure;
    assert_int_equal(event_loop_new(&stuck.loop, &failure), FAILURE_NONE);
    assert_int_equal(
        console_feed_new(stuck.loop, stuck.pipe.write_fd, &events, &stuck.feed, &failure),
        FAILURE_NONE);
    for (int i = 0; i < 500; i++) {
        char record[1025];
        memset(record, '-', 1023);
        memcpy(record + 1023, "\n", 2);
        console_feed_record(stuck.feed, record);
        console_feed_flush(stuck.feed);
    }
    return stuck;
}

static const char *let_move(struct stuck *stuck) {
    while (!console_feed_is_drained(stuck->feed)) {
        look_at(&stuck->pipe);
        event_loop_run_ready(stuck->loop);
    }
    look_at(&stuck->pipe);
    return text_string(&stuck->pipe.seen) + 500 * 1024;
}

static void close_stuck(struct stuck *stuck) {
    console_feed_free(stuck->feed);
    assert_true(event_loop_free(stuck->loop));
    close_fake_console(&stuck->pipe);
}

WITH_DIRECTORY(refused_lines_are_found_again_in_the_file) {
    struct stuck stuck = open_stuck();
    struct opened opened = open_stream();
    opened.stream->feed = stuck.feed;
    uint8_t buffer[5];
    write_all(opened.worker_fd, "one\r\ntwo\rthree\n\xe2\x82\xac four");
    for (int i = 0; i < 8; i++) {
        assert_true(log_stream_read(opened.stream, buffer, sizeof buffer, start));
    }
    assert_non_null(opened.stream->source.behind);
    close(opened.worker_fd);
    log_stream_end(opened.stream, buffer, sizeof buffer, start);
    log_stream_free(opened.stream);
    assert_string_equal(let_move(&stuck), "[0]:one\n[0]:two\n[0]:three\n[0]:\xe2\x82\xac four\n");
    close_stuck(&stuck);
}

WITH_DIRECTORY(lines_that_the_disk_lacks_are_not_looked_for) {
    struct stuck stuck = open_stuck();
    struct opened opened = open_stream();
    opened.stream->feed = stuck.feed;
    int whole_fd = opened.stream->file.fd;
    int full_fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
    uint8_t buffer[64];
    opened.stream->file.fd = full_fd;
    write_all(opened.worker_fd, "lost\nhalf ");
    assert_true(log_stream_read(opened.stream, buffer, sizeof buffer, start));
    opened.stream->file.fd = whole_fd;
    struct instant later = instant_after(start, duration_from_milliseconds(1000));
    write_all(opened.worker_fd, "lost\nkept\n");
    assert_true(log_stream_read(opened.stream, buffer, sizeof buffer, later));
    close(opened.worker_fd);
    log_stream_end(opened.stream, buffer, sizeof buffer, later);
    assert_int_equal(opened.stream->file.lost, 10);
    log_stream_free(opened.stream);
    close(full_fd);
    assert_string_equal(let_move(&stuck), "[0]:kept\n");
    assert_int_equal(console_feed_take_loss(stuck.feed).lines, 2);
    close_stuck(&stuck);
}

/* What the disk does to the file. */

static void put(struct opened *opened, const char *text, struct instant now) {
    uint8_t buffer[64];
    write_all(opened->worker_fd, text);
    assert_true(log_stream_read(opened->stream, buffer, sizeof buffer, now));
}

WITH_DIRECTORY(an_old_file_is_emptied_and_a_shortened_one_goes_on_at_its_new_end) {
    char path[128];
    int old = open(path_in(path, "stdout.log"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    write_all(old, "old");
    close(old);
    struct opened opened = open_stream();
    put(&opened, "0123\r\n\xff", start);
    assert_file(path, "0123\r\n\xff");
    assert_int_equal(truncate(path, 0), 0);
    put(&opened, "abc", start);
    assert_file(path, "abc");
    close(opened.worker_fd);
    log_stream_free(opened.stream);
}

/* A file size limit acts as a disk that is full at first and not later. */
WITH_DIRECTORY(a_full_file_is_tried_again_after_a_second) {
    struct opened opened = open_stream();
    const struct log_file *file = &opened.stream->file;
    signal(SIGXFSZ, SIG_IGN);
    struct rlimit before;
    getrlimit(RLIMIT_FSIZE, &before);
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){.rlim_cur = 4, .rlim_max = before.rlim_max});
    put(&opened, "abcdef", start);
    setrlimit(RLIMIT_FSIZE, &before);
    signal(SIGXFSZ, SIG_DFL);
    assert_int_equal(file->system_error, EFBIG);
    assert_int_equal(file->length, 4);
    assert_int_equal(file->lost, 2);
    put(&opened, "gh", instant_after(start, duration_from_milliseconds(999)));
    assert_int_equal(file->lost, 4);
    put(&opened, "ij", instant_after(start, duration_from_milliseconds(1000)));
    assert_false(file->is_failing);
    assert_int_equal(file->lost, 4);
    assert_file(opened.path, "abcdij");
    close(opened.worker_fd);
    log_stream_free(opened.stream);
}
