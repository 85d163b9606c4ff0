/* SPDX-License-Identifier: BSD-3-Clause */
#include "log_fixture.h"

#include <pthread.h>
#include <sys/wait.h>

#include "host/log/log_thread.h"

/* An owner with its loop, and a log thread writing to two pipes. */
struct scene {
    struct event_loop *loop;
    struct fake_console out;
    struct fake_console error;
    struct log log;
    struct log_thread *thread;
    struct text warnings;
    struct text rescued;
    int answers;
};

static void note_record(
    void *context, enum log_level level, const char *origin, const char *message) {
    struct scene *scene = context;
    (void)level;
    (void)origin;
    text_append_format(&scene->warnings, "%s\n", message);
}

static void note_answer(void *context) {
    struct scene *scene = context;
    scene->answers++;
    event_loop_stop(scene->loop);
}

static void rescue(void *context, const char *text) {
    struct scene *scene = context;
    text_append(&scene->rescued, text);
}

static struct scene *open_patient_scene(struct duration patience) {
    struct scene *scene = calloc(1, sizeof *scene);
    assert_non_null(scene);
    scene->log = (struct log){LOG_LEVEL_WARNING, note_record, scene};
    scene->out = open_fake_console();
    scene->error = open_fake_console();
    struct failure failure;
    assert_int_equal(event_loop_new(&scene->loop, &failure), FAILURE_NONE);
    const struct log_thread_settings settings = {.loop = scene->loop,
        .log = &scene->log,
        .stdout_fd = scene->out.write_fd,
        .stderr_fd = scene->error.write_fd,
        .patience = patience,
        .rescue = rescue,
        .context = scene};
    assert_int_equal(log_thread_new(&settings, &scene->thread, &failure), FAILURE_NONE);
    return scene;
}

static struct scene *open_scene(void) {
    return open_patient_scene(duration_from_seconds(60));
}

/* `ends`: the thread does not hang. */
static void close_scene_that(struct scene *scene, bool ends) {
    assert_int_equal(log_thread_free(scene->thread), ends);
    assert_true(event_loop_free(scene->loop));
    close_fake_console(&scene->out);
    close_fake_console(&scene->error);
    text_clear(&scene->warnings);
}

static void close_scene(struct scene *scene) {
    close_scene_that(scene, true);
    assert_int_equal(scene->rescued.length, 0);
    free(scene);
}

static int open_filtered_stream(
    struct scene *scene, const char *name, enum log_console console, struct log_filter *filter) {
    char path[128];
    struct log_stream *stream;
    struct failure failure;
    int fd;
    assert_int_equal(
        log_stream_open(path_in(path, name), "[0]:", &stream, &fd, &failure), FAILURE_NONE);
    stream->filter = filter;
    log_thread_add_stream(scene->thread, stream, console);
    return fd;
}

static int open_stream(struct scene *scene, const char *name, enum log_console console) {
    return open_filtered_stream(scene, name, console, NULL);
}

/* Waits for the answer to a command given just before. */
static void await_answer(struct scene *scene) {
    int before = scene->answers;
    event_loop_run(scene->loop);
    assert_int_equal(scene->answers, before + 1);
}

static void finish_attempt(struct scene *scene) {
    log_thread_finish_attempt(scene->thread, note_answer, scene);
    await_answer(scene);
}

static void drain(struct scene *scene) {
    log_thread_drain(scene->thread, DURATION_FOREVER, note_answer, scene);
    await_answer(scene);
}

#define WITH_DIRECTORY(test) TEST_WITH(test, make_directory, remove_directory)

WITH_DIRECTORY(a_finished_attempt_has_all_its_output) {
    struct scene *scene = open_scene();
    char path[128];
    int fd = open_stream(scene, "out", LOG_CONSOLE_STDOUT);
    write_all(fd, "one\ntwo");
    close(fd);
    finish_attempt(scene);
    assert_file(path_in(path, "out"), "one\ntwo");
    log_thread_write_record(scene->thread, LOG_CONSOLE_STDOUT, "the report\n");
    drain(scene);
    assert_string_equal(look_at(&scene->out), "[0]:one\n[0]:two\nthe report\n");
    close_scene(scene);
}

WITH_DIRECTORY(filters_live_until_the_attempt_is_finished) {
    struct scene *scene = open_scene();
    char path[128];
    struct text_list needles = {0};
    text_list_add(&needles, "loss");
    struct log_filter *filter;
    struct failure failure;
    assert_int_equal(
        log_filter_open(path_in(path, "filtered"), &needles, &filter, &failure), FAILURE_NONE);
    text_list_clear(&needles);
    log_thread_add_filter(scene->thread, filter);
    int fd = open_filtered_stream(scene, "out", LOG_CONSOLE_STDOUT, filter);
    write_all(fd, "epoch 1\nloss 2\n");
    close(fd);
    finish_attempt(scene);
    assert_file(path, "[0]:loss 2\n");
    close_scene(scene);
}

struct writer {
    struct log_thread *thread;
    int number;
};

static void *write_records(void *context) {
    const struct writer *writer = context;
    for (int i = 0; i < 200; i++) {
        char record[64];
        snprintf(record, sizeof record, "record %d of writer %d\n", i, writer->number);
        log_thread_write_record(writer->thread, LOG_CONSOLE_STDERR, record);
    }
    return NULL;
}

WITH_DIRECTORY(any_thread_may_write_records) {
    struct scene *scene = open_scene();
    pthread_t threads[4];
    struct writer writers[4];
    for (int i = 0; i < 4; i++) {
        writers[i] = (struct writer){scene->thread, i};
        assert_int_equal(pthread_create(&threads[i], NULL, write_records, &writers[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
    }
    drain(scene);
    const char *rest = look_at(&scene->error);
    int lines = 0;
    int next[4] = {0};
    for (; *rest != '\0'; lines++) {
        int number;
        int writer;
        assert_int_equal(sscanf(rest, "record %d of writer %d\n", &number, &writer), 2);
        assert_int_equal(number, next[writer]++);
        rest = strchr(rest, '\n') + 1;
    }
    assert_int_equal(lines, 800);
    close_scene(scene);
}

WITH_DIRECTORY(a_closed_console_is_warned_about_on_the_owners_loop) {
    struct scene *scene = open_scene();
    close(scene->out.read_fd);
    scene->out.read_fd = -1;
    log_thread_write_record(scene->thread, LOG_CONSOLE_STDOUT, "nobody reads this\n");
    drain(scene);
    assert_non_null(strstr(text_string(&scene->warnings), "stdout is closed"));
    close_scene(scene);
}

WITH_DIRECTORY(freeing_without_finishing_leaves_nothing_behind) {
    size_t before = count_open_descriptors();
    struct scene *scene = open_scene();
    int fd = open_stream(scene, "out", LOG_CONSOLE_STDOUT);
    write_all(fd, "unfinished");
    log_thread_finish_attempt(scene->thread, note_answer, scene);
    log_thread_write_record(scene->thread, LOG_CONSOLE_STDERR, "a record\n");
    close_scene(scene);
    close(fd);
    assert_int_equal(count_open_descriptors(), before);
}

WITH_DIRECTORY(signals_stay_with_the_owner) {
    sigset_t mask;
    sigset_t before;
    pthread_sigmask(SIG_SETMASK, NULL, &before);
    struct scene *scene = open_scene();
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    assert_int_equal(sigismember(&mask, SIGTERM), sigismember(&before, SIGTERM));
    assert_int_equal(sigismember(&mask, SIGUSR1), 0);
    close_scene(scene);
}

/* A log file that takes nothing, as on a dead disk: the other end of `*out_fd`. Returns the
 * worker's end of the stream. */
static int open_hanging_stream(struct scene *scene, int *out_fd) {
    static const char block[65536];
    char path[128];
    struct log_stream *stream;
    struct failure failure;
    int ends[2];
    int fd;
    assert_int_equal(
        log_stream_open(path_in(path, "dead"), "[0]:", &stream, &fd, &failure), FAILURE_NONE);
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    assert_int_equal(fcntl(ends[1], F_GETPIPE_SZ), sizeof block);
    assert_int_equal(write(ends[1], block, sizeof block), sizeof block);
    close(stream->file.fd);
    stream->file.fd = ends[1];
    *out_fd = ends[0];
    log_thread_add_stream(scene->thread, stream, LOG_CONSOLE_NONE);
    return fd;
}

WITH_DIRECTORY(a_thread_that_hangs_is_left_behind_and_the_records_saved) {
    struct scene *scene = open_patient_scene(duration_from_milliseconds(100));
    int disk;
    int fd = open_hanging_stream(scene, &disk);
    write_all(fd, "words");
    close(fd);
    log_thread_finish_attempt(scene->thread, note_answer, scene);
    log_thread_write_record(scene->thread, LOG_CONSOLE_STDERR, "the report\n");
    log_thread_write_record(scene->thread, LOG_CONSOLE_STDERR, "the end\n");
    drain(scene); /* as long as the patience lasts */
    close_scene_that(scene, false);
    assert_string_equal(text_string(&scene->rescued), "the report\nthe end\n");
    text_clear(&scene->rescued);
    free(scene);
    char byte;
    assert_int_equal(read(disk, &byte, 1), 1); /* the disk is back, and the thread ends */
    while (read(disk, &byte, 1) == 1) {
    }
    close(disk);
}
