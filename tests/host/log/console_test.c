/* SPDX-License-Identifier: BSD-3-Clause */
#include "log_fixture.h"

#include <sys/socket.h>
#include <sys/wait.h>

#include "host/log/console.h"

/* A console on a pipe, and the results of its callbacks. */
struct scene {
    struct event_loop *loop;
    struct fake_console pipe;
    struct console *console;
    int moves;
    int failures;
    int last_error;
};

static void count_move(void *context) {
    struct scene *scene = context;
    scene->moves++;
}

static void count_failure(void *context, int system_error, bool is_closed) {
    struct scene *scene = context;
    scene->failures++;
    scene->last_error = system_error;
    (void)is_closed;
}

static void open_console_on(struct scene *scene, int fd) {
    struct failure failure;
    const struct console_events events = {count_move, count_failure, scene};
    assert_int_equal(event_loop_new(&scene->loop, &failure), FAILURE_NONE);
    assert_int_equal(
        console_new(scene->loop, fd, &events, &scene->console, &failure), FAILURE_NONE);
}

static struct scene *open_scene(void) {
    struct scene *scene = calloc(1, sizeof *scene);
    assert_non_null(scene);
    signal(SIGPIPE, SIG_IGN);
    scene->pipe = open_fake_console();
    open_console_on(scene, scene->pipe.write_fd);
    return scene;
}

static void close_scene(struct scene *scene) {
    console_free(scene->console);
    assert_true(event_loop_free(scene->loop));
    close_fake_console(&scene->pipe);
    free(scene);
}

static bool add(struct scene *scene, const char *header, const char *line) {
    return console_add_line(scene->console, slice_from_string(header), slice_from_string(line));
}

/* Fills the pipe and then the queue. Returns how many lines fitted. */
static int fill(struct scene *scene) {
    int count = 0;
    char line[64];
    do {
        snprintf(line, sizeof line, "line %d of many that fill the pipe\n", count);
        console_flush(scene->console);
        count++;
    } while (add(scene, "[0]:", line));
    return count - 1;
}

TEST(lines_come_out_whole_and_in_order) {
    struct scene *scene = open_scene();
    assert_true(add(scene, "[0]:", "one\n"));
    assert_true(add(scene, "[1]:", "two\n"));
    console_flush(scene->console);
    assert_string_equal(look_at(&scene->pipe), "[0]:one\n[1]:two\n");
    assert_int_equal(console_queued(scene->console), 0);
    assert_int_equal(console_taken(scene->console), 16);
    close_scene(scene);
}

TEST(a_stalled_console_refuses_when_its_queue_is_full) {
    struct scene *scene = open_scene();
    fill(scene);
    assert_true(console_is_stalled(scene->console));
    assert_true(console_queued(scene->console) > CONSOLE_LINE_CEILING - 1024);
    assert_true(console_add_record(scene->console, slice_from_string("a record has room\n")));
    close_scene(scene);
}

TEST(a_console_that_moves_gets_everything) {
    struct scene *scene = open_scene();
    int count = fill(scene);
    while (console_queued(scene->console) > 0) {
        look_at(&scene->pipe);
        event_loop_run_ready(scene->loop);
    }
    assert_true(scene->moves > 0);
    const char *rest = look_at(&scene->pipe);
    for (int i = 0; i < count; i++) {
        char line[80];
        snprintf(line, sizeof line, "[0]:line %d of many that fill the pipe\n", i);
        assert_true(text_starts_with(rest, line));
        rest += strlen(line);
    }
    assert_string_equal(rest, "");
    close_scene(scene);
}

TEST(the_flags_of_the_descriptor_stay) {
    struct scene *scene = open_scene();
    int before = fcntl(scene->pipe.write_fd, F_GETFL);
    fill(scene);
    event_loop_run_ready(scene->loop);
    assert_int_equal(fcntl(scene->pipe.write_fd, F_GETFL), before);
    assert_int_equal(before & O_NONBLOCK, 0);
    close_scene(scene);
}

TEST(a_closed_console_is_said_once_and_takes_everything) {
    struct scene *scene = open_scene();
    close(scene->pipe.read_fd);
    scene->pipe.read_fd = -1;
    for (int i = 0; i < 100000; i++) {
        assert_true(add(scene, "[0]:", "nobody reads this line\n"));
    }
    console_flush(scene->console);
    assert_true(console_is_closed(scene->console));
    assert_int_equal(scene->failures, 1);
    assert_int_equal(scene->last_error, EPIPE);
    assert_int_equal(console_queued(scene->console), 0);
    close_scene(scene);
}

TEST(a_console_that_closes_while_stalled_is_noticed) {
    struct scene *scene = open_scene();
    fill(scene);
    close(scene->pipe.read_fd);
    scene->pipe.read_fd = -1;
    event_loop_run_ready(scene->loop);
    assert_true(console_is_closed(scene->console));
    assert_int_equal(scene->moves, 1);
    close_scene(scene);
}

TEST(a_full_disk_loses_what_waits_and_goes_on) {
    int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    struct scene scene = {0};
    open_console_on(&scene, fd);
    for (int i = 0; i < 3; i++) {
        assert_true(add(&scene, "", "line\n"));
        console_flush(scene.console);
        assert_int_equal(console_queued(scene.console), 0);
    }
    assert_false(console_is_closed(scene.console));
    assert_int_equal(scene.failures, 1);
    assert_int_equal(scene.last_error, ENOSPC);
    console_free(scene.console);
    assert_true(event_loop_free(scene.loop));
    close(fd);
}

TEST(a_socket_never_makes_us_wait) {
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    assert_int_equal(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
    struct scene scene = {.pipe = {.read_fd = ends[0], .write_fd = ends[1]}};
    open_console_on(&scene, ends[1]);
    fill(&scene);
    assert_true(console_is_stalled(scene.console));
    while (console_queued(scene.console) > 0) {
        look_at(&scene.pipe);
        event_loop_run_ready(scene.loop);
    }
    console_free(scene.console);
    assert_true(event_loop_free(scene.loop));
    close_fake_console(&scene.pipe);
}

/* Another process writes to the same pipe. A line that fits into one write must stay in one
 * piece. */
TEST(lines_of_others_do_not_come_between) {
    struct scene *scene = open_scene();
    char line[1024];
    memset(line, 'a', sizeof line - 2);
    memcpy(line + sizeof line - 2, "\n", 2);
    pid_t other = fork();
    if (other == 0) {
        memset(line, 'b', sizeof line - 2);
        for (int i = 0; i < 500; i++) {
            if (write(scene->pipe.write_fd, line, sizeof line - 1) != sizeof line - 1) {
                _exit(1);
            }
        }
        _exit(0);
    }
    for (int i = 0; i < 500; i++) {
        while (!add(scene, "", line)) {
            look_at(&scene->pipe);
            event_loop_run_ready(scene->loop);
        }
        console_flush(scene->console);
    }
    while (scene->pipe.seen.length < 1000 * (sizeof line - 1)) {
        look_at(&scene->pipe);
        event_loop_run_ready(scene->loop);
    }
    const char *rest = text_string(&scene->pipe.seen);
    while (*rest != '\0') {
        assert_int_equal(strspn(rest, (char[]){*rest, '\0'}), sizeof line - 2);
        rest += sizeof line - 1;
    }
    assert_int_equal(waitpid(other, NULL, 0), other);
    close_scene(scene);
}

TEST(two_descriptors_of_one_place_are_recognised) {
    struct scene *scene = open_scene();
    int copy = dup(scene->pipe.write_fd);
    assert_true(console_is_same(scene->console, copy));
    struct fake_console other = open_fake_console();
    assert_false(console_is_same(scene->console, other.write_fd));
    close_fake_console(&other);
    close(copy);
    close_scene(scene);
}
