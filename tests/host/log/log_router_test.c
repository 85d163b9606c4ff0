/* SPDX-License-Identifier: BSD-3-Clause */
#include "log_fixture.h"

#include <sys/wait.h>

#include "host/log/log_stream.h"

/* A router between streams and two consoles. */
struct scene {
    struct event_loop *loop;
    struct fake_console out;
    struct fake_console error;
    struct log_router *router;
    struct text warnings;
    int drains;
};

static void note_warning(void *context, const char *message) {
    struct scene *scene = context;
    text_append_format(&scene->warnings, "%s\n", message);
}

static void note_drain(void *context) {
    struct scene *scene = context;
    scene->drains++;
}

static struct scene *open_scene(bool has_one_console) {
    struct scene *scene = calloc(1, sizeof *scene);
    assert_non_null(scene);
    struct failure failure;
    const struct log_router_events events = {
        .warned = note_warning, .drained = note_drain, .context = scene};
    scene->out = open_fake_console();
    scene->error = open_fake_console();
    assert_int_equal(event_loop_new(&scene->loop, &failure), FAILURE_NONE);
    assert_int_equal(log_router_new(scene->loop, scene->out.write_fd,
                         has_one_console ? scene->out.write_fd : scene->error.write_fd, &events,
                         &scene->router, &failure),
        FAILURE_NONE);
    return scene;
}

static void close_scene(struct scene *scene) {
    log_router_free(scene->router);
    assert_true(event_loop_free(scene->loop));
    close_fake_console(&scene->out);
    close_fake_console(&scene->error);
    text_clear(&scene->warnings);
    free(scene);
}

/* Opens a stream with the log file `name`; returns the worker's end. */
static int add_stream(struct scene *scene, const char *name, const char *header,
    enum log_console console, struct log_filter *filter) {
    char path[128];
    struct log_stream *stream;
    struct failure failure;
    int fd;
    assert_int_equal(
        log_stream_open(path_in(path, name), header, &stream, &fd, &failure), FAILURE_NONE);
    log_router_add_stream(scene->router, stream, console, filter);
    return fd;
}

static void run_ready(struct scene *scene) {
    for (int i = 0; i < 20; i++) {
        event_loop_run_ready(scene->loop);
    }
}

static void assert_log(const char *name, const char *expected) {
    char path[128];
    assert_file(path_in(path, name), expected);
}

#define WITH_DIRECTORY(test) TEST_WITH(test, make_directory, remove_directory)

WITH_DIRECTORY(a_stream_goes_to_its_file_and_lines_to_its_console) {
    struct scene *scene = open_scene(false);
    int out = add_stream(scene, "out", "[0]:", LOG_CONSOLE_STDOUT, NULL);
    int error = add_stream(scene, "error", "[0]:", LOG_CONSOLE_STDERR, NULL);
    int quiet = add_stream(scene, "quiet", NULL, LOG_CONSOLE_NONE, NULL);
    write_all(out, "10%\r20%\r\nx");
    write_all(error, "oh\n");
    write_all(quiet, "only a file\n");
    run_ready(scene);
    assert_log("out", "10%\r20%\r\nx");
    assert_log("quiet", "only a file\n");
    assert_string_equal(look_at(&scene->out), "[0]:10%\n[0]:20%\n");
    assert_string_equal(look_at(&scene->error), "[0]:oh\n");
    close(out);
    close(error);
    close(quiet);
    run_ready(scene);
    assert_string_equal(look_at(&scene->out), "[0]:10%\n[0]:20%\n[0]:x\n");
    close_scene(scene);
}

WITH_DIRECTORY(tail_does_not_split_partial_lines) {
    struct scene *scene = open_scene(false);
    int fd = add_stream(scene, "out", "[default0]:", LOG_CONSOLE_STDOUT, NULL);
    write_all(fd, "abc");
    run_ready(scene);
    assert_string_equal(look_at(&scene->out), "");
    write_all(fd, "def\n");
    run_ready(scene);
    assert_string_equal(look_at(&scene->out), "[default0]:abcdef\n");
    close(fd);
    close_scene(scene);
}

WITH_DIRECTORY(finishing_an_attempt_takes_and_closes_everything) {
    size_t before = count_open_descriptors();
    struct scene *scene = open_scene(false);
    size_t idle = count_open_descriptors();
    for (int attempt = 0; attempt < 3; attempt++) {
        int first = add_stream(scene, "first", "[0]:", LOG_CONSOLE_STDOUT, NULL);
        int second = add_stream(scene, "second", "[1]:", LOG_CONSOLE_STDOUT, NULL);
        write_all(first, "never ended");
        write_all(second, "by a newline");
        log_router_finish_attempt(scene->router);
        close(first);
        close(second);
        run_ready(scene);
        assert_int_equal(count_open_descriptors(), idle);
        assert_log("second", "by a newline");
    }
    assert_non_null(strstr(look_at(&scene->out), "[0]:never ended\n[1]:by a newline\n"));
    close_scene(scene);
    assert_int_equal(count_open_descriptors(), before);
}

WITH_DIRECTORY(a_stray_writer_does_not_hold_up_the_end) {
    struct scene *scene = open_scene(false);
    int fd = add_stream(scene, "out", "[0]:", LOG_CONSOLE_STDOUT, NULL);
    pid_t stray = fork();
    if (stray == 0) {
        for (int other = 0; other < 1024; other++) {
            if (other != fd) {
                close(other); /* above all the reading end of the pipe */
            }
        }
        while (write(fd, "still here\n", 11) > 0) {
        }
        _exit(0);
    }
    struct pollfd poller = {.fd = scene->out.read_fd, .events = POLLIN};
    while (poll(&poller, 1, 0) == 0) {
        event_loop_run_ready(scene->loop);
    }
    log_router_finish_attempt(scene->router);
    assert_int_equal(write(fd, "x", 1), -1);
    close(fd);
    assert_int_equal(waitpid(stray, NULL, 0), stray);
    close_scene(scene);
}

WITH_DIRECTORY(filters_collect_from_all_streams) {
    char path[128];
    struct scene *scene = open_scene(false);
    struct text_list needles = {0};
    text_list_add(&needles, "loss");
    struct log_filter *filter;
    struct failure failure;
    assert_int_equal(
        log_filter_open(path_in(path, "filtered"), &needles, &filter, &failure), FAILURE_NONE);
    text_list_clear(&needles);
    log_router_add_filter(scene->router, filter);
    int first = add_stream(scene, "first", "[0]:", LOG_CONSOLE_STDOUT, filter);
    int second = add_stream(scene, "second", "[1]:", LOG_CONSOLE_STDOUT, filter);
    write_all(first, "loss 1\nother\n");
    run_ready(scene);
    write_all(second, "x\nloss 2");
    run_ready(scene);
    close(first);
    close(second);
    log_router_finish_attempt(scene->router);
    assert_log("filtered", "[0]:loss 1\n[1]:loss 2\n");
    assert_string_equal(look_at(&scene->out), "[0]:loss 1\n[0]:other\n[1]:x\n[1]:loss 2\n");
    close_scene(scene);
}

WITH_DIRECTORY(one_place_behind_both_consoles_keeps_the_order) {
    struct scene *scene = open_scene(true);
    log_router_write_record(scene->router, LOG_CONSOLE_STDERR, "one\n");
    log_router_write_record(scene->router, LOG_CONSOLE_STDOUT, "two\n");
    log_router_write_record(scene->router, LOG_CONSOLE_STDERR, "three\n");
    assert_string_equal(look_at(&scene->out), "one\ntwo\nthree\n");
    close_scene(scene);
}

WITH_DIRECTORY(one_who_writes_much_does_not_starve_the_others) {
    struct scene *scene = open_scene(false);
    char path[128];
    int busy = add_stream(scene, "busy", NULL, LOG_CONSOLE_NONE, NULL);
    int calm = add_stream(scene, "calm", NULL, LOG_CONSOLE_NONE, NULL);
    run_ready(scene);
    struct text much = {0};
    while (much.length < 200 * 1024) {
        text_append(&much, "0123456789abcdef");
    }
    fcntl(busy, F_SETFL, O_NONBLOCK);
    assert_true(write(busy, much.data, much.length) > 0);
    write_all(calm, "x");
    event_loop_run_ready(scene->loop);
    struct text got = read_file(path_in(path, "busy"));
    assert_true(got.length > 0 && got.length <= 64 * 1024);
    assert_log("calm", "x");
    text_clear(&got);
    text_clear(&much);
    close(busy);
    close(calm);
    close_scene(scene);
}

/* The workers write more than any queue holds. The console is read only at the end, and must get
 * every line. */
WITH_DIRECTORY(a_slow_console_lags_and_loses_nothing) {
    struct scene *scene = open_scene(false);
    int first = add_stream(scene, "first", "[0]:", LOG_CONSOLE_STDOUT, NULL);
    int second = add_stream(scene, "second", "[1]:", LOG_CONSOLE_STDOUT, NULL);
    struct text expected[2] = {{0}, {0}};
    for (int i = 0; i < 20000; i++) {
        char line[80];
        snprintf(line, sizeof line, "step %d: the loss is still the same as before\n", i);
        write_all(first, line);
        write_all(second, line);
        text_append_format(&expected[0], "[0]:%s", line);
        text_append_format(&expected[1], "[1]:%s", line);
        event_loop_run_ready(scene->loop);
    }
    close(first);
    close(second);
    log_router_finish_attempt(scene->router);
    log_router_write_record(scene->router, LOG_CONSOLE_STDOUT, "the report\n");
    log_router_drain(scene->router, DURATION_FOREVER);
    assert_int_equal(scene->drains, 0);
    while (scene->drains == 0) {
        look_at(&scene->out);
        event_loop_run_ready(scene->loop);
    }
    struct text got[2] = {{0}, {0}};
    const char *rest = look_at(&scene->out);
    while (*rest == '[') {
        size_t length = strcspn(rest, "\n") + 1;
        text_append_bytes(&got[rest[1] - '0'], rest, length);
        rest += length;
    }
    assert_string_equal(rest, "the report\n");
    for (int i = 0; i < 2; i++) {
        assert_string_equal(text_string(&got[i]), text_string(&expected[i]));
        text_clear(&got[i]);
        text_clear(&expected[i]);
    }
    assert_string_equal(text_string(&scene->warnings), "");
    close_scene(scene);
}

WITH_DIRECTORY(draining_is_done_at_once_when_nothing_waits) {
    struct scene *scene = open_scene(false);
    log_router_drain(scene->router, DURATION_FOREVER);
    assert_int_equal(scene->drains, 1);
    close_scene(scene);
}

WITH_DIRECTORY(draining_gives_up_on_a_console_that_takes_nothing) {
    struct scene *scene = open_scene(false);
    for (int i = 0; i < 3000; i++) {
        log_router_write_record(
            scene->router, LOG_CONSOLE_STDOUT, "a record of about forty bytes of text\n");
    }
    log_router_drain(scene->router, duration_from_milliseconds(1));
    while (scene->drains == 0) {
        event_loop_run_ready(scene->loop);
    }
    assert_int_equal(scene->drains, 1);
    assert_non_null(strstr(text_string(&scene->warnings), "stdout was too slow"));
    close_scene(scene);
}
