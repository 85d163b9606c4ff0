/* SPDX-License-Identifier: BSD-3-Clause */
#include "log_fixture.h"

#include <sys/socket.h>
#include <sys/wait.h>

#include "host/log/console.h"

/* A feed on a pipe, and one stream's log file. */
struct scene {
    struct event_loop *loop;
    struct fake_console pipe;
    struct console_feed *feed;
    struct console_feed_source source;
    char path[128];
    int file;
    uint64_t length; /* length of the file */
    struct text expected;
    int failures;
    int last_error;
};

static void ignore_move(void *context) {
    (void)context;
}

static void count_failure(void *context, int system_error, bool is_closed) {
    struct scene *scene = context;
    (void)is_closed;
    scene->failures++;
    scene->last_error = system_error;
}

static struct scene *open_scene_on(struct fake_console console) {
    struct scene *scene = calloc(1, sizeof *scene);
    assert_non_null(scene);
    struct failure failure;
    const struct console_feed_events events = {ignore_move, count_failure, scene};
    scene->pipe = console;
    assert_int_equal(event_loop_new(&scene->loop, &failure), FAILURE_NONE);
    assert_int_equal(
        console_feed_new(scene->loop, scene->pipe.write_fd, &events, &scene->feed, &failure),
        FAILURE_NONE);
    scene->file = open(path_in(scene->path, "log"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(scene->file >= 0);
    scene->source = (struct console_feed_source){.path = scene->path, .header = "[0]:"};
    return scene;
}

static struct scene *open_scene(void) {
    return open_scene_on(open_fake_console());
}

static void close_scene(struct scene *scene) {
    console_feed_end(scene->feed, &scene->source);
    console_feed_free(scene->feed);
    assert_true(event_loop_free(scene->loop));
    close_fake_console(&scene->pipe);
    close(scene->file);
    text_clear(&scene->expected);
    free(scene);
}

/* Adds a line of the stream to its file and to the feed, as a stream does. */
static void give(struct scene *scene, const char *text) {
    write_all(scene->file, text);
    uint64_t from = scene->length;
    scene->length += strlen(text);
    const struct line line = {slice_from_string(text), strlen(text)};
    console_feed_line(scene->feed, &scene->source, &line, from);
    console_feed_extend(&scene->source, scene->length);
    text_append_format(&scene->expected, "[0]:%s", text);
}

/* Adds lines until the stream is far behind a console that accepts nothing. */
static void fall_behind(struct scene *scene) {
    for (int i = 0; i < 40000; i++) {
        char line[64];
        snprintf(line, sizeof line, "line %d goes to a console that is stuck\n", i);
        give(scene, line);
        console_feed_flush(scene->feed);
    }
    assert_non_null(scene->source.behind);
}

static void let_console_move(struct scene *scene) {
    while (!console_feed_is_drained(scene->feed)) {
        look_at(&scene->pipe);
        event_loop_run_ready(scene->loop);
    }
    look_at(&scene->pipe);
}

static void assert_no_loss(struct scene *scene) {
    struct console_feed_loss loss = console_feed_take_loss(scene->feed);
    assert_int_equal(loss.lines + loss.records + loss.bytes, 0);
}

#define WITH_DIRECTORY(test) TEST_WITH(test, make_directory, remove_directory)

WITH_DIRECTORY(a_console_that_keeps_up_needs_no_file) {
    struct scene *scene = open_scene();
    unlink(scene->path);
    give(scene, "one\n");
    console_feed_record(scene->feed, "a record\n");
    give(scene, "two\n");
    console_feed_flush(scene->feed);
    assert_string_equal(look_at(&scene->pipe), "[0]:one\na record\n[0]:two\n");
    close_scene(scene);
}

WITH_DIRECTORY(a_stream_that_fell_behind_catches_up_from_its_file) {
    struct scene *scene = open_scene();
    fall_behind(scene);
    let_console_move(scene);
    assert_null(scene->source.behind);
    give(scene, "and goes on live\n");
    console_feed_flush(scene->feed);
    assert_string_equal(look_at(&scene->pipe), text_string(&scene->expected));
    assert_no_loss(scene);
    close_scene(scene);
}

WITH_DIRECTORY(a_stream_that_ended_behind_is_shown_to_its_end) {
    struct scene *scene = open_scene();
    fall_behind(scene);
    const struct line last = {slice_from_string("unfinished\n"), strlen("unfinished")};
    write_all(scene->file, "unfinished");
    console_feed_line(scene->feed, &scene->source, &last, scene->length);
    console_feed_extend(&scene->source, scene->length + last.raw_length);
    console_feed_end(scene->feed, &scene->source);
    console_feed_record(scene->feed, "the report\n");
    let_console_move(scene);
    text_append(&scene->expected, "[0]:unfinished\nthe report\n");
    assert_string_equal(text_string(&scene->pipe.seen), text_string(&scene->expected));
    assert_no_loss(scene);
    close_scene(scene);
}

WITH_DIRECTORY(a_record_does_not_wait_for_a_stream_that_goes_on) {
    struct scene *scene = open_scene();
    fall_behind(scene);
    console_feed_record(scene->feed, "a record\n");
    let_console_move(scene);
    const char *record = strstr(text_string(&scene->pipe.seen), "a record\n");
    assert_non_null(record);
    assert_true(record - scene->pipe.seen.data < 512 * 1024);
    close_scene(scene);
}

WITH_DIRECTORY(a_file_that_is_gone_is_counted_as_lost) {
    struct scene *scene = open_scene();
    fall_behind(scene);
    unlink(scene->path);
    let_console_move(scene);
    struct console_feed_loss loss = console_feed_take_loss(scene->feed);
    assert_true(loss.bytes > 0);
    assert_true(loss.bytes < scene->length);
    assert_null(scene->source.behind);
    close_scene(scene);
}

WITH_DIRECTORY(a_file_that_was_shortened_does_not_keep_us) {
    struct scene *scene = open_scene();
    fall_behind(scene);
    assert_int_equal(truncate(scene->path, (off_t)scene->length - 10), 0);
    let_console_move(scene);
    assert_true(console_feed_take_loss(scene->feed).bytes > 0);
    close_scene(scene);
}

WITH_DIRECTORY(what_is_dropped_is_counted) {
    struct scene *scene = open_scene();
    fall_behind(scene);
    console_feed_end(scene->feed, &scene->source);
    console_feed_record(scene->feed, "a record\n");
    assert_false(console_feed_is_drained(scene->feed));
    console_feed_drop(scene->feed);
    assert_true(console_feed_is_drained(scene->feed));
    struct console_feed_loss loss = console_feed_take_loss(scene->feed);
    assert_int_equal(loss.records, 1);
    assert_true(loss.bytes > 1000000);
    assert_no_loss(scene);
    close_scene(scene);
}

WITH_DIRECTORY(lines_that_are_nowhere_else_are_counted) {
    struct scene *scene = open_scene();
    fall_behind(scene);
    struct console_feed_source other = {.path = "/nonexistent", .header = ""};
    const struct line line = {slice_from_string("lost\n"), 5};
    for (int i = 0; i < 100; i++) {
        console_feed_line(scene->feed, &other, &line, CONSOLE_FEED_NOWHERE);
    }
    assert_null(other.behind);
    assert_true(console_feed_take_loss(scene->feed).lines > 90);
    close_scene(scene);
}

WITH_DIRECTORY(a_closed_console_forgets_what_waits) {
    struct scene *scene = open_scene();
    fall_behind(scene);
    close(scene->pipe.read_fd);
    scene->pipe.read_fd = -1;
    while (!console_feed_is_drained(scene->feed)) {
        event_loop_run_ready(scene->loop);
    }
    assert_int_equal(scene->failures, 1);
    assert_null(scene->source.behind);
    assert_no_loss(scene);
    close_scene(scene);
}

WITH_DIRECTORY(what_waits_for_a_stuck_console_is_bounded) {
    struct scene *scene = open_scene();
    fall_behind(scene);
    console_feed_end(scene->feed, &scene->source);
    for (int i = 0; i < 2 * CONSOLE_FEED_ITEM_CEILING; i++) {
        struct console_feed_source source = {.path = scene->path, .header = "[1]:"};
        const struct line line = {slice_from_string("short\n"), 6};
        console_feed_line(scene->feed, &source, &line, 0);
        console_feed_end(scene->feed, &source);
        console_feed_record(scene->feed, "record\n");
    }
    struct console_feed_loss loss = console_feed_take_loss(scene->feed);
    assert_true(loss.records > CONSOLE_FEED_ITEM_CEILING);
    assert_true(loss.bytes > 0);
    let_console_move(scene);
    close_scene(scene);
}

/* The place of the console. */

WITH_DIRECTORY(the_flags_of_the_descriptor_stay) {
    struct scene *scene = open_scene();
    int before = fcntl(scene->pipe.write_fd, F_GETFL);
    fall_behind(scene);
    event_loop_run_ready(scene->loop);
    assert_int_equal(fcntl(scene->pipe.write_fd, F_GETFL), before);
    assert_int_equal(before & O_NONBLOCK, 0);
    close_scene(scene);
}

WITH_DIRECTORY(a_full_disk_loses_what_waits_and_goes_on) {
    int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    struct scene *scene = open_scene_on((struct fake_console){.read_fd = -1, .write_fd = fd});
    for (int i = 0; i < 3; i++) {
        give(scene, "line\n");
        console_feed_flush(scene->feed);
        assert_true(console_feed_is_drained(scene->feed));
    }
    assert_int_equal(scene->failures, 1);
    assert_int_equal(scene->last_error, ENOSPC);
    close_scene(scene);
}

WITH_DIRECTORY(a_socket_never_makes_us_wait) {
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    assert_int_equal(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
    struct scene *scene =
        open_scene_on((struct fake_console){.read_fd = ends[0], .write_fd = ends[1]});
    fall_behind(scene);
    let_console_move(scene);
    assert_string_equal(look_at(&scene->pipe), text_string(&scene->expected));
    close_scene(scene);
}

/* Another process writes to the same pipe. A line that fits into one write must stay in one
 * piece. */
WITH_DIRECTORY(lines_of_others_do_not_come_between) {
    struct scene *scene = open_scene();
    char line[1024];
    size_t length = sizeof line - 1;
    scene->source.header = "";
    memset(line, 'a', length - 1);
    memcpy(line + length - 1, "\n", 2);
    pid_t other = fork();
    if (other == 0) {
        memset(line, 'b', length - 1);
        for (int i = 0; i < 500; i++) {
            if (write(scene->pipe.write_fd, line, length) != (ssize_t)length) {
                _exit(1);
            }
        }
        _exit(0);
    }
    for (int i = 0; i < 500; i++) {
        give(scene, line);
        console_feed_flush(scene->feed);
        look_at(&scene->pipe);
        event_loop_run_ready(scene->loop);
    }
    while (scene->pipe.seen.length < 1000 * length) {
        look_at(&scene->pipe);
        event_loop_run_ready(scene->loop);
    }
    const char *rest = text_string(&scene->pipe.seen);
    while (*rest != '\0') {
        assert_int_equal(strspn(rest, (char[]){*rest, '\0'}), length - 1);
        rest += length;
    }
    assert_int_equal(waitpid(other, NULL, 0), other);
    close_scene(scene);
}
