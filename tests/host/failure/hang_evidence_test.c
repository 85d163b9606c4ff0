/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/memory.h"
#include "hang_fixture.h"
#include "host/failure/hang_evidence.h"
#include "host/loop/clock.h"
#include "host/loop/files.h"

static void learn(void *context, const struct hang_summary *summary) {
    hang_summary_clear(context);
    hang_summary_copy(summary, context);
}

static struct hang_evidence_request request_about(
    const struct hang_fixture *fixture, pid_t pid, struct hang_summary *summary) {
    return (struct hang_evidence_request){
        .pid = pid,
        .reason = "the test wants it",
        .path = fixture->path,
        .end = fixture->report.end,
        .learnt = learn,
        .context = summary,
    };
}

static void collect(
    struct hang_fixture *fixture, const char *output, struct hang_summary *summary) {
    struct hang_evidence_request request = request_about(fixture, fixture->process.pid, summary);
    request.outputs[0] = output;
    *summary = (struct hang_summary){0};
    hang_evidence_collect(&request);
}

/* The fixture's shell inherits no sockets and has one thread. */
static void collect_of_this_process(struct hang_fixture *fixture, struct hang_summary *summary) {
    struct hang_evidence_request request = request_about(fixture, getpid(), summary);
    *summary = (struct hang_summary){0};
    hang_evidence_collect(&request);
}

HANG_TEST(
    the_last_lines_of_the_output_are_kept, hang_fixture_init(&fixture, "echo; exec sleep 1000")) {
    struct hang_summary summary;
    char *output = temporary_tree_path(&fixture->tree, "stdout.log");
    FILE *file = fopen(output, "w");
    for (int i = 1; i <= 5000; i++) {
        fprintf(file, "line %d\n", i);
    }
    fclose(file);
    collect(fixture, output, &summary);
    hang_fixture_expect(fixture, "stdout.log:\nline 4981\n");
    hang_fixture_expect(fixture, "\nline 5000\n");
    free(output);
    hang_summary_clear(&summary);
}

HANG_TEST(a_dead_process_leaves_a_report_that_says_so,
    hang_fixture_init(&fixture, "echo; exec sleep 1000")) {
    struct hang_summary summary;
    struct process process = fixture->process;
    fixture->process = processes_start_shell("exit 0", -1, -1);
    kill(process.pid, SIGKILL);
    processes_wait(&process);
    struct process replacement = fixture->process;
    fixture->process.pid = process.pid;
    collect(fixture, NULL, &summary);
    hang_fixture_expect(fixture, "the process is gone");
    fixture->process = replacement;
    hang_summary_clear(&summary);
}

/* Whatever Python is on the PATH: when its memory cannot be read, it is asked. */
TEST(a_python_is_told_of_by_its_line) {
    struct hang_fixture fixture;
    struct hang_summary summary = {0};
    struct failure failure;
    struct hang_evidence_request request = {.reason = "the test wants it",
        .dump = {.signal = 50},
        .learnt = learn,
        .context = &summary};
    assert_int_equal(
        memory_file_new("muster-test", true, &request.dump.fd, &failure), FAILURE_NONE);
    char *script =
        text_format("exec python3 -c 'import faulthandler, os, time\n"
                    "fd = os.open(f\"/proc/{os.getppid()}/fd/%d\", os.O_WRONLY | os.O_APPEND)\n"
                    "faulthandler.register(50, file=fd, all_threads=True)\n"
                    "def step():\n    print(flush=True); time.sleep(1000)\nstep()'",
            request.dump.fd);
    hang_fixture_init(&fixture, script);
    request.pid = fixture.process.pid;
    request.path = fixture.path;
    request.end = fixture.report.end;
    request.is_brief = true; /* it runs on, and is asked again */
    assert_true(hang_evidence_collect(&request));
    assert_non_null(summary.stack);
    request.is_brief = false;
    assert_true(hang_evidence_collect(&request));
    assert_string_equal(summary.stack, "<string>:5 in step\n<string>:6 in <module>\n");
    hang_fixture_expect(&fixture, "    <string>:6 in <module>\n");
    hang_summary_clear(&summary);
    hang_fixture_clear(&fixture);
    close(request.dump.fd);
    free(script);
}

/* Open files. */

TEST(sockets_are_told_with_their_peer) {
    struct hang_fixture fixture;
    struct hang_summary summary;
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t size = sizeof address;
    int pair[2];
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &size), 0);
    assert_int_equal(connect(client, (struct sockaddr *)&address, size), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    hang_fixture_init(&fixture, "echo; kill -STOP $$");
    collect_of_this_process(&fixture, &summary);
    char *peer = text_format("-> 127.0.0.1:%d ESTABLISHED", ntohs(address.sin_port));
    hang_fixture_expect(&fixture, peer);
    hang_fixture_expect(&fixture, "LISTEN, 1 waiting to be accepted");
    hang_fixture_expect(&fixture, "] unix unnamed CONNECTED");
    free(peer);
    close(listener);
    close(client);
    close(pair[0]);
    close(pair[1]);
    hang_summary_clear(&summary);
    hang_fixture_clear(&fixture);
}

TEST(more_files_than_are_told_are_counted) {
    struct hang_fixture fixture;
    struct hang_summary summary;
    int fds[512];
    for (int i = 0; i < 512; i++) {
        fds[i] = dup(0);
        assert_true(fds[i] >= 0);
    }
    hang_fixture_init(&fixture, "echo; kill -STOP $$");
    collect_of_this_process(&fixture, &summary);
    hang_fixture_expect(&fixture, "  and ");
    for (int i = 0; i < 512; i++) {
        close(fds[i]);
    }
    hang_summary_clear(&summary);
    hang_fixture_clear(&fixture);
}

/* Threads. */

/* The process waits a moment after it has printed the line that announces it, so the look is
 * repeated. */
static void collect_until(
    struct hang_fixture *fixture, struct hang_summary *summary, char state, const char *call) {
    *summary = (struct hang_summary){0};
    do {
        hang_summary_clear(summary);
        collect(fixture, NULL, summary);
    } while (summary->state != state ||
             (call != NULL && (summary->call == NULL || !text_equals(summary->call, call))));
}

HANG_TEST(a_reader_of_a_pipe_is_seen_in_its_call,
    hang_fixture_init(
        &fixture, "mkfifo $$.fifo; exec 3<>$$.fifo; rm $$.fifo; echo; read line <&3")) {
    struct hang_summary summary = {0};
    do { /* its state is read before its threads: it may fall asleep between them */
        hang_summary_clear(&summary);
        collect_until(fixture, &summary, 'S', "read");
    } while (strstr(hang_fixture_read(fixture), "State:\tS (sleeping)") == NULL);
    assert_int_equal(summary.thread_count, 1);
    hang_fixture_expect(fixture, "sleeping in read");
    hang_summary_clear(&summary);
}

HANG_TEST(a_stopped_process_is_seen_as_that, hang_fixture_init(&fixture, "echo; kill -STOP $$")) {
    struct hang_summary summary;
    collect_until(fixture, &summary, 'T', NULL);
    hang_fixture_expect(fixture, "stopped");
    hang_summary_clear(&summary);
}

static void *wait_for_ever(void *context) {
    sem_wait(context);
    return NULL;
}

/* Threads are found by their names, because a sanitizer may have threads of its own. */
HANG_TEST(every_thread_is_told, hang_fixture_init(&fixture, "echo; kill -STOP $$")) {
    enum { COUNT = 20 };
    pthread_t threads[COUNT];
    sem_t never;
    struct hang_summary summary;
    sem_init(&never, 0, 0);
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, wait_for_ever, &never), 0);
        assert_int_equal(pthread_setname_np(threads[i], "one_of_twenty"), 0);
    }
    collect_of_this_process(fixture, &summary);
    int told = 0;
    for (const char *at = hang_fixture_read(fixture); (at = strstr(at, "(one_of_twenty)")) != NULL;
         at++) {
        told++;
    }
    assert_int_equal(told, COUNT);
    assert_true(summary.thread_count >= COUNT + 1);
    for (int i = 0; i < COUNT; i++) {
        sem_post(&never);
    }
    for (int i = 0; i < COUNT; i++) {
        pthread_join(threads[i], NULL);
    }
    sem_destroy(&never);
    hang_summary_clear(&summary);
}

/* Debuggers: shell scripts of the test, in the only directory of the PATH that has any. */

static void install(struct hang_fixture *fixture, const char *name, const char *script) {
    char *path = temporary_tree_path(&fixture->tree, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "#!/bin/sh\n%s\n", script);
    fclose(file);
    assert_int_equal(chmod(path, 0755), 0);
    free(path);
}

/* Returns how the debugger that was asked has ended, for which nobody else waits here. */
static int collect_full(
    struct hang_fixture *fixture, const atomic_bool *is_abandoned, struct hang_summary *summary) {
    struct hang_evidence_request request = request_about(fixture, fixture->process.pid, summary);
    char *path = memory_duplicate_string(getenv("PATH"));
    int status;
    setenv("PATH", fixture->tree.root, 1);
    request.is_full = true;
    request.is_abandoned = is_abandoned;
    *summary = (struct hang_summary){0};
    hang_evidence_collect(&request);
    setenv("PATH", path, 1);
    assert_true(waitpid(-1, &status, 0) > 0);
    free(path);
    return status;
}

struct abandoning {
    char *fifo; /* the debugger writes to it */
    atomic_bool is_abandoned;
};

static void *abandon_when_asked(void *context) {
    struct abandoning *abandoning = context;
    char byte;
    int fd = open(abandoning->fifo, O_RDONLY | O_CLOEXEC);
    if (read(fd, &byte, 1) != 1) {
        abort();
    }
    close(fd);
    atomic_store(&abandoning->is_abandoned, true);
    return NULL;
}

HANG_TEST(a_debugger_that_takes_too_long_is_killed,
    hang_fixture_init(&fixture, "echo; exec sleep 1000")) {
    struct hang_summary summary;
    pthread_t thread;
    struct abandoning abandoning = {.fifo = temporary_tree_path(&fixture->tree, "fifo")};
    assert_int_equal(mkfifo(abandoning.fifo, 0600), 0);
    install(fixture, "py-spy", "echo asked >${0%/*}/fifo; exec /bin/sleep 1000");
    assert_int_equal(pthread_create(&thread, NULL, abandon_when_asked, &abandoning), 0);
    int status = collect_full(fixture, &abandoning.is_abandoned, &summary);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGKILL);
    assert_null(summary.stack);
    assert_int_equal(pthread_join(thread, NULL), 0);
    free(abandoning.fifo);
    hang_summary_clear(&summary);
}
