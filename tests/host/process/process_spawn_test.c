/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "processes.h"

/* A directory of its own for a test's scripts. */
static char *make_directory(void) {
    char *path = memory_duplicate_string("/tmp/process_spawn_test_XXXXXX");
    assert_non_null(mkdtemp(path));
    return path;
}

static char *write_file(const char *directory, const char *name, const char *content, mode_t mode) {
    char *path = text_format("%s/%s", directory, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, content, strlen(content)), (ssize_t)strlen(content));
    assert_int_equal(fchmod(fd, mode), 0);
    close(fd);
    return path;
}

static void remove_file(char *path_taken) {
    assert_int_equal(unlink(path_taken), 0);
    free(path_taken);
}

static void remove_directory(char *path_taken) {
    assert_int_equal(rmdir(path_taken), 0);
    free(path_taken);
}

/* Starts `program` with PATH alone in its environment (NULL: nothing); the failure code. */
static enum failure_code start(
    const char *program, const char *path, struct process *process, struct failure *failure) {
    struct text_list arguments = {0};
    struct text_list environment = {0};
    text_list_add(&arguments, program);
    if (path != NULL) {
        text_list_set_variable(&environment, "PATH", path);
    }
    struct process_request request;
    process_request_init(&request, &arguments, &environment);
    enum failure_code code = process_spawn(&request, process, failure);
    text_list_clear(&arguments);
    text_list_clear(&environment);
    return code;
}

static void assert_refused(
    const char *program, const char *path, int system_error, const char *message) {
    struct process process;
    struct failure failure;
    int descriptors = processes_open_descriptors();
    assert_int_equal(start(program, path, &process, &failure), FAILURE_SYSTEM);
    assert_string_equal(failure.message, message);
    assert_int_equal(failure.system_error, system_error);
    assert_int_equal(processes_open_descriptors(), descriptors);
    processes_assert_no_children();
}

/* What the shell prints, up to `size` bytes. */
static void run_shell(const char *script, char *output, size_t size) {
    int ends[2];
    processes_make_pipe(ends);
    struct process process = processes_start_shell(script, ends[1], -1);
    close(ends[1]);
    size_t length = 0;
    ssize_t more;
    while ((more = read(ends[0], output + length, size - 1 - length)) > 0) {
        length += (size_t)more;
    }
    output[length] = '\0';
    close(ends[0]);
    assert_int_equal(processes_wait(&process), 0);
}

TEST(worker_leads_its_own_session_and_group) {
    char output[256];
    run_shell("cut -d' ' -f1,5,6 /proc/$$/stat", output, sizeof output);
    int pid;
    int group;
    int session;
    assert_int_equal(sscanf(output, "%d %d %d", &pid, &group, &session), 3);
    assert_int_equal(group, pid);
    assert_int_equal(session, pid);
}

TEST(worker_has_no_blocked_or_ignored_signal) {
    sigset_t blocked;
    sigset_t before;
    sigfillset(&blocked);
    sigprocmask(SIG_SETMASK, &blocked, &before);
    signal(SIGUSR1, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    char output[256];
    /* grep inherits the signal state from the shell, which does not change it. */
    run_shell("exec grep -E '^Sig(Blk|Ign)' /proc/self/status", output, sizeof output);
    signal(SIGUSR1, SIG_DFL);
    signal(SIGPIPE, SIG_DFL);
    sigset_t after;
    sigprocmask(SIG_SETMASK, &before, &after);
    unsigned long long worker_blocked;
    unsigned long long worker_ignored;
    assert_int_equal(
        sscanf(output, "SigBlk: %llx SigIgn: %llx", &worker_blocked, &worker_ignored), 2);
    /* Signals 32 and 33 belong to the C library. A process that posix_spawn started, as make does,
     * ignores one of them. */
    const unsigned long long of_the_library = 3ULL << (32 - 1);
    assert_int_equal(worker_blocked, 0);
    assert_int_equal(worker_ignored & ~of_the_library, 0);
    assert_int_equal(sigismember(&after, SIGUSR2), 1); /* the caller's own mask is unchanged */
}

TEST(worker_inherits_no_descriptor_but_the_standard_ones) {
    int leaking[2];
    assert_int_equal(pipe(leaking), 0); /* on purpose without close-on-exec */
    char output[256];
    run_shell("exec ls /proc/self/fd", output, sizeof output);
    close(leaking[0]);
    close(leaking[1]);
    assert_string_equal(output, "0\n1\n2\n3\n"); /* 3 is the directory ls reads */
}

TEST(worker_output_goes_where_the_request_says) {
    int first[2];
    int second[2];
    processes_make_pipe(first);
    processes_make_pipe(second);
    struct text_list arguments = {0};
    text_list_add(&arguments, "sh");
    text_list_add(&arguments, "-c");
    text_list_add(&arguments, "echo out; echo err >&2");
    struct text_list environment = processes_environment();
    struct process_request request;
    process_request_init(&request, &arguments, &environment);
    request.stdout_fd = first[1];
    request.stderr_fd = second[1];
    struct process process;
    assert_int_equal(process_spawn(&request, &process, NULL), FAILURE_NONE);
    char line[16];
    processes_read_line(first[0], line, sizeof line);
    assert_string_equal(line, "out");
    processes_read_line(second[0], line, sizeof line);
    assert_string_equal(line, "err");
    assert_int_equal(processes_wait(&process), 0);
    text_list_clear(&arguments);
    text_list_clear(&environment);
    for (int i = 0; i < 2; i++) {
        close(first[i]);
        close(second[i]);
    }
}

/* Runs in a child, whose standard output and error are two pipes: swaps them for the worker. */
static void start_with_swapped_output(int stdout_fd, int stderr_fd) {
    dup2(stdout_fd, STDOUT_FILENO);
    dup2(stderr_fd, STDERR_FILENO);
    char script[] = "echo out; echo err >&2";
    char *items[] = {(char[]){"/bin/sh"}, (char[]){"-c"}, script, NULL};
    struct text_list arguments = {.items = items, .count = 3};
    struct text_list environment = {0};
    struct process_request request;
    process_request_init(&request, &arguments, &environment);
    request.stdout_fd = STDERR_FILENO;
    request.stderr_fd = STDOUT_FILENO;
    struct process process;
    _exit(process_spawn(&request, &process, NULL) == FAILURE_NONE &&
                  waitpid(process.pid, NULL, 0) == process.pid
              ? 0
              : 1);
}

TEST(output_and_error_can_be_swapped) {
    int first[2];
    int second[2];
    processes_make_pipe(first);
    processes_make_pipe(second);
    pid_t child = fork();
    if (child == 0) {
        start_with_swapped_output(first[1], second[1]);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    char line[16];
    processes_read_line(first[0], line, sizeof line);
    assert_string_equal(line, "err");
    processes_read_line(second[0], line, sizeof line);
    assert_string_equal(line, "out");
    for (int i = 0; i < 2; i++) {
        close(first[i]);
        close(second[i]);
    }
}

TEST(program_is_looked_up_in_the_path_of_the_worker) {
    char *directory = make_directory();
    char *script = write_file(directory, "only-here", "#!/bin/sh\nexit 7\n", 0700);
    char *path = text_format("/nowhere:%s:/bin", directory);
    struct process process;
    assert_int_equal(start("only-here", path, &process, NULL), FAILURE_NONE);
    int status = processes_wait(&process);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 7);
    free(path);
    remove_file(script);
    remove_directory(directory);
}

TEST(denied_file_gives_way_to_a_later_one_on_the_path) {
    char *directory = make_directory();
    char *denied = write_file(directory, "true", "#!/bin/sh\nexit 7\n", 0600);
    char *path = text_format("%s:/bin:/usr/bin", directory);
    struct process process;
    assert_int_equal(start("true", path, &process, NULL), FAILURE_NONE);
    assert_int_equal(processes_wait(&process), 0);
    free(path);
    remove_file(denied);
    remove_directory(directory);
}

TEST(without_a_path_the_standard_places_are_searched) {
    struct process process;
    assert_int_equal(start("true", NULL, &process, NULL), FAILURE_NONE);
    assert_int_equal(processes_wait(&process), 0);
}

TEST(script_without_first_line_is_refused_with_the_reason) {
    char *directory = make_directory();
    char *script = write_file(directory, "x.sh", "exit 7\n", 0700);
    char *message = text_format("cannot execute '%s': Exec format error (neither a program for "
                                "this machine nor a script that begins with '#!')",
        script);
    assert_refused(script, "/bin", ENOEXEC, message);
    free(message);
    remove_file(script);
    remove_directory(directory);
}

TEST(request_without_arguments_is_invalid) {
    struct text_list nothing = {0};
    struct process_request request;
    process_request_init(&request, &nothing, &nothing);
    struct process process;
    assert_int_equal(process_spawn(&request, &process, NULL), FAILURE_INVALID);
}

TEST(broken_descriptor_is_refused_before_the_program_runs) {
    struct text_list arguments = {0};
    text_list_add(&arguments, "true");
    struct text_list environment = {0};
    struct process_request request;
    process_request_init(&request, &arguments, &environment);
    request.stdout_fd = 9999;
    struct process process;
    struct failure failure;
    assert_int_equal(process_spawn(&request, &process, &failure), FAILURE_SYSTEM);
    assert_string_equal(
        failure.message, "cannot redirect the process' output: Bad file descriptor");
    processes_assert_no_children();
    text_list_clear(&arguments);
    text_list_clear(&environment);
}

/* The lowest CPU this process may use. */
static int first_allowed_cpu(void) {
    cpu_set_t allowed;
    assert_int_equal(sched_getaffinity(0, sizeof allowed, &allowed), 0);
    int cpu = 0;
    while (!CPU_ISSET((size_t)cpu, &allowed)) {
        cpu++;
    }
    return cpu;
}

TEST(worker_is_bound_to_its_cpus_before_it_runs) {
    int cpu = first_allowed_cpu();
    struct cpu_set_bits cpus = {0};
    cpus.words[cpu / 64] = UINT64_C(1) << (cpu % 64);
    int ends[2];
    processes_make_pipe(ends);
    struct text_list arguments = {0};
    text_list_add(&arguments, "grep");
    text_list_add(&arguments, "Cpus_allowed_list");
    text_list_add(&arguments, "/proc/self/status");
    struct text_list environment = processes_environment();
    struct process_request request;
    process_request_init(&request, &arguments, &environment);
    request.stdout_fd = ends[1];
    request.cpus = &cpus;
    struct process process;
    assert_int_equal(process_spawn(&request, &process, NULL), FAILURE_NONE);
    char line[64];
    processes_read_line(ends[0], line, sizeof line);
    char *expected = text_format("Cpus_allowed_list:\t%d", cpu);
    assert_string_equal(line, expected);
    free(expected);
    assert_int_equal(processes_wait(&process), 0);
    text_list_clear(&arguments);
    text_list_clear(&environment);
    close(ends[0]);
    close(ends[1]);
}

TEST(empty_cpu_set_is_refused_with_the_reason) {
    struct cpu_set_bits cpus = {0};
    struct text_list arguments = {0};
    text_list_add(&arguments, "true");
    struct text_list environment = {0};
    struct process_request request;
    process_request_init(&request, &arguments, &environment);
    request.cpus = &cpus;
    struct process process;
    struct failure failure;
    assert_int_equal(process_spawn(&request, &process, &failure), FAILURE_SYSTEM);
    assert_string_equal(failure.message, "cannot bind the process to its CPUs: Invalid argument");
    processes_assert_no_children();
    text_list_clear(&arguments);
    text_list_clear(&environment);
}

TEST(thousand_starts_leave_nothing_behind) {
    int descriptors = processes_open_descriptors();
    for (int i = 0; i < 1000; i++) {
        struct process process;
        struct failure failure;
        if (start("/bin/true", NULL, &process, &failure) != FAILURE_NONE) {
            fail_msg("%s", failure.message);
        }
        assert_int_equal(processes_wait(&process), 0);
    }
    assert_int_equal(processes_open_descriptors(), descriptors);
    processes_assert_no_children();
}
