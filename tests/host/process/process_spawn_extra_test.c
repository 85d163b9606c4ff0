/* SPDX-License-Identifier: BSD-3-Clause */
/* The input and the fourth descriptor of a process, which standby workers and those who record
 * have. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <unistd.h>

#include "processes.h"

/* Starts `sh -c script`, which has `extra_fd` as its fourth descriptor, and reads what it prints.
 */
static void run_with_extra(const char *script, int extra_fd, char *output, size_t size) {
    int ends[2];
    struct text_list arguments = {0};
    struct text_list environment = processes_environment();
    struct process_request request;
    struct process process;
    processes_make_pipe(ends);
    text_list_add(&arguments, "sh");
    text_list_add(&arguments, "-c");
    text_list_add(&arguments, script);
    process_request_init(&request, &arguments, &environment);
    request.stdin_fd = extra_fd;
    request.stdout_fd = ends[1];
    request.extra_fd = extra_fd;
    assert_int_equal(process_spawn(&request, &process, NULL), FAILURE_NONE);
    close(ends[1]);
    processes_read_line(ends[0], output, size);
    close(ends[0]);
    assert_int_equal(processes_wait(&process), 0);
    text_list_clear(&arguments);
    text_list_clear(&environment);
}

static void worker_has_the_fourth_descriptor_that_it_is_to_have(void **state) {
    (void)state;
    char output[64];
    int before = processes_open_descriptors();
    int file = open("/dev/zero", O_RDONLY | O_CLOEXEC);
    run_with_extra("readlink /proc/$$/fd/0 /proc/$$/fd/3 | tr '\\n' ' '; "
                   "ls /proc/self/fd | tr '\\n' ' '; echo",
        file, output, sizeof output);
    close(file);
    /* the last one is the directory that ls reads */
    assert_string_equal(output, "/dev/zero /dev/zero 0 1 2 3 4 ");
    assert_int_equal(processes_open_descriptors(), before);
}

/* Wherever the caller's own descriptors lie: the report, the fourth one itself. */
static void the_fourth_descriptor_may_lie_anywhere(void **state) {
    (void)state;
    char output[64];
    int held[8];
    for (int count = 0; count < 8; count++) {
        for (int i = 0; i < count; i++) {
            held[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
        }
        int file = open("/dev/zero", O_RDONLY | O_CLOEXEC);
        for (int i = 0; i < count; i++) {
            close(held[i]); /* the report's pipe is opened here */
        }
        run_with_extra("readlink /proc/$$/fd/3", file, output, sizeof output);
        assert_string_equal(output, "/dev/zero");
        close(file);
    }
}

static void a_failed_start_with_a_fourth_descriptor_is_told(void **state) {
    (void)state;
    struct text_list arguments = {0};
    struct text_list environment = {0};
    struct process_request request;
    struct process process;
    struct failure failure = {0};
    int before = processes_open_descriptors();
    int file = open("/dev/zero", O_RDONLY | O_CLOEXEC);
    text_list_add(&arguments, "/no/such/program");
    text_list_add(&environment, "A=1");
    process_request_init(&request, &arguments, &environment);
    request.extra_fd = file;
    assert_int_equal(process_spawn(&request, &process, &failure), FAILURE_SYSTEM);
    assert_int_equal(failure.system_error, ENOENT);
    close(file);
    assert_int_equal(processes_open_descriptors(), before);
    processes_assert_no_children();
    text_list_clear(&arguments);
    text_list_clear(&environment);
}

static atomic_bool is_over;

/* What the agent's blocking calls do. */
static void *look_at_directories(void *context) {
    while (!is_over) {
        int fd = open("/", O_RDONLY | O_CLOEXEC | O_DIRECTORY);
        close(fd);
    }
    return context;
}

static int look_for_directories(void *context, int extra_fd) {
    (void)context;
    (void)extra_fd;
    for (int fd = STDERR_FILENO + 1; fd < 64; fd++) {
        struct stat found;
        if (fstat(fd, &found) == 0 && S_ISDIR(found.st_mode)) {
            return 1;
        }
    }
    return 0;
}

static void a_function_has_nothing_that_another_thread_has_just_opened(void **state) {
    (void)state;
    struct process_function function = {.run = look_for_directories};
    struct text_list arguments = {0};
    struct text_list environment = processes_environment();
    struct process_request request;
    struct process process;
    pthread_t thread;
    assert_int_equal(process_function_keep(&function, -1, -1, NULL), FAILURE_NONE);
    text_list_add(&arguments, "function");
    process_request_init(&request, &arguments, &environment);
    request.function = &function;
    is_over = false;
    assert_int_equal(pthread_create(&thread, NULL, look_at_directories, NULL), 0);
    int inherited = 0;
    for (int i = 0; i < 100; i++) {
        assert_int_equal(process_spawn(&request, &process, NULL), FAILURE_NONE);
        inherited += processes_wait(&process) == 0 ? 0 : 1;
    }
    is_over = true;
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(inherited, 0);
    number_list_clear(&function.kept);
    text_list_clear(&arguments);
    text_list_clear(&environment);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(worker_has_the_fourth_descriptor_that_it_is_to_have),
    cmocka_unit_test(the_fourth_descriptor_may_lie_anywhere),
    cmocka_unit_test(a_failed_start_with_a_fourth_descriptor_is_told),
    cmocka_unit_test(a_function_has_nothing_that_another_thread_has_just_opened),
};

UNIT_TESTS(tests)
