/* SPDX-License-Identifier: BSD-3-Clause */
/* The Python that these tests find on the PATH does what the hook does in a worker: it lets its own
 * faulthandler write to a file of ours. It opens that file by the number that it has here. */
#include "unit.h"

#include <sched.h>
#include <sys/stat.h>

#include "hang_fixture.h"
#include "host/failure/hang_report.h"
#include "host/loop/files.h"

#define SIGNAL 50

#define REGISTER                                                                                   \
    "import faulthandler, os, signal, threading, time\n"                                           \
    "parent = os.getppid()\n"                                                                      \
    "fd = os.open(f\"/proc/{parent}/fd/%d\", os.O_WRONLY | os.O_APPEND)\n"                         \
    "faulthandler.register(50, file=fd, all_threads=True, chain=False)\n"                          \
    "def hang():\n"                                                                                \
    "    print(flush=True); time.sleep(1000)\n"

struct asked {
    struct hang_fixture fixture;
    struct hang_evidence_dump dump;
    char *stack;
};

/* Starts a Python that listens and then runs the script. */
static void asked_init(struct asked *asked, const char *script) {
    struct failure failure;
    *asked = (struct asked){.dump = {.signal = SIGNAL}};
    assert_int_equal(memory_file_new("muster-test", true, &asked->dump.fd, &failure), FAILURE_NONE);
    char *registering = text_format(REGISTER, asked->dump.fd);
    char *command = text_format("exec python3 -c '%s%s'", registering, script);
    hang_fixture_init(&asked->fixture, command);
    free(registering);
    free(command);
}

static bool asked_write(struct asked *asked) {
    return hang_evidence_write_dump(
        &asked->fixture.report, asked->fixture.process.pid, &asked->dump, &asked->stack);
}

static void asked_clear(struct asked *asked) {
    free(asked->stack);
    hang_fixture_clear(&asked->fixture);
    close(asked->dump.fd);
}

TEST(a_python_that_listens_tells_its_stacks) {
    struct asked asked;
    asked_init(&asked, "hang()\n");
    assert_true(asked_write(&asked));
    assert_true(text_starts_with(asked.stack, "<string>:6 in hang\n<string>:"));
    char *heading = text_format("  Python thread %d, 0x", (int)asked.fixture.process.pid);
    hang_fixture_expect(&asked.fixture, heading);
    hang_fixture_expect(&asked.fixture, "    <string>:7 in <module>\n");
    free(heading);
    asked_clear(&asked);
}

TEST(it_lives_on_and_can_be_asked_again) {
    struct asked asked;
    asked_init(&asked, "hang()\n");
    for (int i = 0; i < 3; i++) {
        free(asked.stack);
        assert_true(asked_write(&asked));
        assert_true(text_starts_with(asked.stack, "<string>:6 in hang\n<string>:"));
    }
    assert_int_equal(kill(asked.fixture.process.pid, 0), 0);
    asked_clear(&asked);
}

TEST(another_thread_answers_when_the_first_one_takes_no_signal) {
    struct asked asked;
    asked_init(&asked, "threading.Thread(target=threading.Event().wait, daemon=True).start()\n"
                       "signal.pthread_sigmask(signal.SIG_BLOCK, [50])\nhang()\n");
    assert_true(asked_write(&asked));
    assert_true(text_starts_with(asked.stack, "<string>:6 in hang\n<string>:"));
    hang_fixture_expect(&asked.fixture, " in _bootstrap\n");
    asked_clear(&asked);
}

static char state_of(pid_t pid) {
    char path[64];
    char line[512];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_non_null(fgets(line, sizeof line, file));
    fclose(file);
    return strrchr(line, ')')[2];
}

/* Whoever starts a process with vfork sleeps like that until the process runs its program, which
 * this one never does: it waits for the other end of a FIFO. */
TEST(another_thread_answers_when_the_first_one_is_stuck_in_the_kernel) {
    struct asked asked;
    struct temporary_tree tree;
    temporary_tree_init(&tree);
    char *fifo = temporary_tree_path(&tree, "fifo");
    assert_int_equal(mkfifo(fifo, 0600), 0);
    char *script =
        text_format("threading.Thread(target=threading.Event().wait, daemon=True).start()\n"
                    "def spawn(): print(flush=True); os.posix_spawn(\"/bin/true\", [\"true\"], {}, "
                    "file_actions=[(os.POSIX_SPAWN_OPEN, 0, \"%s\", os.O_RDONLY, 0)])\n"
                    "spawn()\n",
            fifo);
    asked_init(&asked, script);
    while (state_of(asked.fixture.process.pid) != 'D') {
        sched_yield();
    }
    assert_true(asked_write(&asked));
    assert_true(text_starts_with(asked.stack, "<string>:8 in spawn\n"));
    hang_fixture_expect(&asked.fixture, " in _bootstrap\n");
    asked_clear(&asked);
    free(script);
    free(fifo);
    temporary_tree_clear(&tree);
}

static void expect_refusal(struct asked *asked, const char *words) {
    assert_false(asked_write(asked));
    assert_null(asked->stack);
    hang_fixture_expect(&asked->fixture, words);
    assert_int_equal(kill(asked->fixture.process.pid, 0), 0);
}

TEST(who_blocks_the_signal_is_not_asked) {
    struct asked asked;
    asked_init(&asked, "signal.pthread_sigmask(signal.SIG_BLOCK, [50])\nhang()\n");
    expect_refusal(&asked, "not asked for its stacks: none of its threads takes a signal now\n");
    asked_clear(&asked);
}

/* What it had in the file before is no answer. */
TEST(what_the_file_had_before_is_not_shown) {
    struct asked asked;
    asked_init(&asked, "os.write(fd, b\"json\\tjson.py\\n\")\nhang()\n");
    assert_true(asked_write(&asked));
    assert_null(strstr(hang_fixture_read(&asked.fixture), "json"));
    asked_clear(&asked);
}

/* The number may belong to another file by now. */
TEST(who_has_closed_the_file_is_not_asked) {
    struct asked asked;
    asked_init(&asked, "os.close(fd)\nhang()\n");
    expect_refusal(&asked, "not asked for its stacks: it has closed the file for them\n");
    asked_clear(&asked);
}

/* The signal would kill it. */
TEST(who_has_become_another_program_is_not_asked) {
    struct asked asked;
    asked_init(
        &asked, "os.execvp(\"sh\", [\"sh\", \"-c\", \"echo; while :; do sleep 1; done\"])\n");
    expect_refusal(
        &asked, "not asked for its stacks: it has no handler for the signal (any more)\n");
    asked_clear(&asked);
}

TEST(who_is_stopped_is_not_asked) {
    struct asked asked;
    asked_init(&asked, "print(flush=True); os.kill(os.getpid(), signal.SIGSTOP)\n");
    siginfo_t info;
    assert_int_equal(waitid(P_PID, (id_t)asked.fixture.process.pid, &info, WSTOPPED | WNOWAIT), 0);
    expect_refusal(&asked, "not asked for its stacks: it is stopped\n");
    asked_clear(&asked);
}

TEST(a_handler_of_another_kind_does_not_answer) {
    struct asked asked;
    asked_init(&asked, "signal.signal(50, lambda *_: None)\nhang()\n");
    expect_refusal(&asked, "was asked for its stacks and did not answer in time\n");
    asked_clear(&asked);
}

HANG_TEST(
    nobody_is_asked_without_an_agreement, hang_fixture_init(&fixture, "echo; exec sleep 1000")) {
    const struct hang_evidence_dump none = {0};
    char *stack;
    assert_false(hang_evidence_write_dump(&fixture->report, fixture->process.pid, &none, &stack));
    assert_null(stack);
    assert_string_equal(hang_fixture_read(fixture), "");
}

TEST(who_is_no_child_of_ours_is_not_asked) {
    struct asked asked;
    asked_init(&asked, "hang()\n");
    assert_false(
        hang_evidence_write_dump(&asked.fixture.report, getppid(), &asked.dump, &asked.stack));
    hang_fixture_expect(&asked.fixture, "not asked for its stacks: it is no child of the agent\n");
    asked_clear(&asked);
}
