/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <signal.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "host/guardian_play.h"
#include "host/loop/event_loop.h"
#include "host/process/guardian.h"
#include "host/process/process_family.h"
#include "host/process/process_table.h"

static void play_workers_with_children(int output) {
    struct guardian *guardian = start_guardian(NULL);
    int fd = guardian_descriptor(guardian);
    processes_start_shell("sleep 1000 & sleep 1000 & echo 1; wait", output, fd);
    processes_start_shell("set -m 2>/dev/null; sleep 1000 & echo 1; exec sleep 1000", output, fd);
}

TEST(killing_the_whole_group_of_the_agent_does_not_help) {
    struct agent agent = start_agent(play_workers_with_children);
    read_number(&agent);
    read_number(&agent);
    assert_int_equal(kill(-agent.pid, SIGKILL), 0);
    assert_nothing_is_left(&agent);
}

/* The child is in the middle of exec most of the time, so its environment cannot be read then. */
static void play_worker_whose_child_execs_without_end(int output) {
    char *mark = text_format("MARK=/job/%d/0/error.json", (int)getpid());
    char *fingerprint = text_format("MARK=/job/%d/", (int)getpid());
    char again[] = "AGAIN=exec sh -c \"$AGAIN\"";
    struct guardian *guardian = start_guardian(fingerprint);
    free(fingerprint);
    putenv(mark);
    putenv(again);
    processes_start_shell(
        "setsid sh -c 'echo $$; eval \"$AGAIN\"' & wait", output, guardian_descriptor(guardian));
}

TEST(grandchild_in_the_middle_of_exec_does_not_get_away) {
    for (int i = 0; i < 10; i++) {
        struct agent agent = start_agent(play_worker_whose_child_execs_without_end);
        read_number(&agent);
        assert_int_equal(kill(agent.pid, SIGKILL), 0);
        assert_nothing_is_left(&agent);
    }
}

static void play_leader_that_is_gone(int output) {
    struct guardian *guardian = start_guardian(NULL);
    struct process process =
        processes_start_shell("sleep 1000 & exit 0", output, guardian_descriptor(guardian));
    waitpid(process.pid, NULL, 0);
    say_number(output, 1);
}

TEST(session_whose_leader_is_gone_is_ended_too) {
    struct agent agent = start_agent(play_leader_that_is_gone);
    read_number(&agent);
    assert_int_equal(kill(agent.pid, SIGKILL), 0);
    assert_nothing_is_left(&agent);
}

static void play_farewell(int output) {
    struct guardian *guardian = start_guardian(NULL);
    struct process process = processes_start_shell(
        "sleep 1000 & echo $!; exit 0", output, guardian_descriptor(guardian));
    waitpid(process.pid, NULL, 0);
    say_number(output, guardian_pid(guardian));
    (void)send(guardian_descriptor(guardian), "x", 1, 0); /* no notice: it is passed over */
    guardian_free(guardian);
    _exit(0);
}

TEST(farewell_spares_everybody) {
    struct agent agent = start_agent(play_farewell);
    pid_t survivor = read_number(&agent);
    pid_t guardian = read_number(&agent);
    wait_for_stranger(guardian);
    end_living(survivor);
    assert_nothing_is_left(&agent);
}

/* A stranger's session has the number of one that was announced; and neither the name nor the value
 * of a variable has only a part of the fingerprint. */
static void play_strangers(int output) {
    char *fingerprint = text_format("MARK=/job/%d/", (int)getpid());
    struct guardian *guardian = start_guardian(fingerprint);
    char *script = text_format("MARK=/job/other/ setsid sh -c 'echo $$; exec sleep 1000' & "
                               "XMARK=/job/%d/0 setsid sh -c 'echo $$; exec sleep 1000' & "
                               "setsid sh -c 'echo $$; exec sleep 1000' & wait",
        (int)getpid());
    int own[2];
    processes_make_pipe(own);
    processes_start_shell(script, own[1], guardian_descriptor(guardian));
    for (int i = 0; i < 3; i++) {
        char line[16];
        struct kernel_process_stat stat;
        processes_read_line(own[0], line, sizeof line);
        struct guardian_notice notice = {.kind = GUARDIAN_SESSION_BEGINS, .leader = atoi(line)};
        if (!process_table_read(notice.leader, &stat)) {
            _exit(1);
        }
        notice.start_time = stat.start_time - 1;
        if (i == 2 && send(guardian_descriptor(guardian), &notice, sizeof notice, 0) < 0) {
            _exit(1);
        }
        say_number(output, notice.leader);
    }
    free(script);
    free(fingerprint);
    say_number(output, guardian_pid(guardian));
}

TEST(who_only_resembles_the_job_is_spared) {
    struct agent agent = start_agent(play_strangers);
    pid_t strangers[3];
    for (int i = 0; i < 3; i++) {
        strangers[i] = read_number(&agent);
    }
    pid_t guardian = read_number(&agent);
    assert_int_equal(kill(agent.pid, SIGKILL), 0);
    wait_for_stranger(guardian);
    for (int i = 0; i < 3; i++) {
        end_living(strangers[i]);
    }
    assert_nothing_is_left(&agent);
}

static void play_ended_session(int output) {
    struct guardian *guardian = start_guardian(NULL);
    struct process process = processes_start_shell(
        "sleep 1000 & echo $!; exit 0", output, guardian_descriptor(guardian));
    waitpid(process.pid, NULL, 0);
    guardian_end_session(guardian, process.pid);
    say_number(output, guardian_pid(guardian));
}

TEST(ended_session_is_not_guarded_any_more) {
    struct agent agent = start_agent(play_ended_session);
    pid_t survivor = read_number(&agent);
    pid_t guardian = read_number(&agent);
    assert_int_equal(kill(agent.pid, SIGKILL), 0);
    wait_for_stranger(guardian);
    end_living(survivor);
    assert_nothing_is_left(&agent);
}

TEST(guardian_is_nobodys_child_and_a_stranger_to_the_session) {
    assert_int_equal(
        prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0); /* a subreaper must not adopt it either */
    struct guardian *guardian;
    assert_int_equal(guardian_start(NULL, false, &guardian, NULL), FAILURE_NONE);
    processes_assert_no_children();
    pid_t pid = guardian_pid(guardian);
    struct kernel_process_stat stat;
    assert_true(process_table_read(pid, &stat));
    assert_int_not_equal(stat.parent, getpid());
    assert_int_equal(stat.session, pid);
    int is_subreaper = 0;
    assert_int_equal(prctl(PR_GET_CHILD_SUBREAPER, &is_subreaper, 0, 0, 0), 0);
    assert_int_equal(is_subreaper, 1);
    prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0);
    guardian_free(guardian);
    wait_for_stranger(pid);
}

TEST(guardian_ignores_what_is_sent_to_groups) {
    struct guardian *guardian;
    assert_int_equal(guardian_start(NULL, false, &guardian, NULL), FAILURE_NONE);
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        assert_int_equal(kill(guardian_pid(guardian), signals[i]), 0);
    }
    struct process process = processes_start_shell("exit 0", -1, guardian_descriptor(guardian));
    assert_int_equal(processes_wait(&process), 0);
    struct kernel_process_stat stat;
    assert_true(process_table_read(guardian_pid(guardian), &stat));
    assert_int_not_equal(stat.state, 'Z');
    assert_int_not_equal(stat.state, 'T');
    pid_t pid = guardian_pid(guardian);
    guardian_free(guardian);
    wait_for_stranger(pid);
}

TEST(guardian_has_a_name_of_its_own) {
    struct guardian *guardian;
    assert_int_equal(guardian_start(NULL, false, &guardian, NULL), FAILURE_NONE);
    pid_t pid = guardian_pid(guardian);
    char path[NUMBER_PATH_SIZE];
    char text[64] = {0};
    number_path_format(path, "/proc/", pid, "/comm");
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(read(fd, text, sizeof text - 1) > 0);
    close(fd);
    assert_string_equal(text, GUARDIAN_NAME "\n");
    number_path_format(path, "/proc/", pid, "/cmdline");
    fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(read(fd, text, sizeof text - 1) > 0);
    close(fd);
    assert_true(text_starts_with(GUARDIAN_NAME, text)); /* cut where the original was shorter */
    guardian_free(guardian);
    wait_for_stranger(pid);
}

TEST(guardian_costs_one_descriptor) {
    int descriptors = processes_open_descriptors();
    struct guardian *guardian;
    assert_int_equal(guardian_start(NULL, false, &guardian, NULL), FAILURE_NONE);
    assert_int_equal(processes_open_descriptors(), descriptors + 1);
    pid_t pid = guardian_pid(guardian);
    guardian_free(guardian);
    assert_int_equal(processes_open_descriptors(), descriptors);
    wait_for_stranger(pid);
}

TEST(nobody_may_stand_in_for_a_guardian) {
    guardian_free(NULL);
    assert_int_equal(guardian_descriptor(NULL), -1);
    guardian_end_session(NULL, 1);
    guardian_note_session(NULL, 1);
    guardian_listen(NULL);
    guardian_remove_at_end(NULL, GUARDIAN_REMAINS_FIFO, "/tmp/it");
    guardian_announce_self(-1);
    guardian_withdraw_self(-1);
}

struct watch_play {
    struct event_loop *loop;
    int output;
    pid_t ended;
};

static void say_that_it_is_replaced(void *context, pid_t pid, const struct failure *failure) {
    struct watch_play *play = context;
    play->ended = failure == NULL ? pid : -1;
    event_loop_stop(play->loop);
}

static void watch(struct guardian *guardian, struct watch_play *play) {
    const struct guardian_events events = {.ended = say_that_it_is_replaced, .context = play};
    if (event_loop_new(&play->loop, NULL) != FAILURE_NONE ||
        guardian_watch(guardian, play->loop, &events, NULL) != FAILURE_NONE) {
        _exit(1);
    }
}

TEST(replaced_guardian_is_nobodys_child_either) {
    struct watch_play play = {0};
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0);
    struct guardian *guardian = start_guardian(NULL);
    watch(guardian, &play);
    int descriptors = processes_open_descriptors();
    kill(guardian_pid(guardian), SIGKILL);
    event_loop_run(play.loop);
    processes_assert_no_children();
    assert_int_equal(processes_open_descriptors(), descriptors);
    pid_t pid = guardian_pid(guardian);
    guardian_free(guardian);
    assert_true(event_loop_free(play.loop));
    wait_for_stranger(pid);
    prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0);
}

/* What an agent leaves in the file system. */

static char remains[] = "/tmp/guardian_test_XXXXXX";

static const struct {
    const char *name;
    enum guardian_remains_kind kind;
    bool stays;
} things[] = {
    {"fifo", GUARDIAN_REMAINS_FIFO, false},
    {"fifo_that_is_read", GUARDIAN_REMAINS_FIFO, true},
    {"file_in_its_place", GUARDIAN_REMAINS_FIFO, true},
    {"socket", GUARDIAN_REMAINS_SOCKET, false},
    {"socket_that_listens", GUARDIAN_REMAINS_SOCKET, true},
    {"directory", GUARDIAN_REMAINS_DIRECTORY, false},
    {"directory_with_a_file", GUARDIAN_REMAINS_DIRECTORY, true},
    {"tree", GUARDIAN_REMAINS_TREE, false},
    {"later_tree", GUARDIAN_REMAINS_TREE, true}, /* not there when it was added */
    {"nothing", GUARDIAN_REMAINS_TREE, false},
};

static char *path_in_remains(const char *name) {
    return text_format("%s/%s", remains, name);
}

static void make_in_remains(const char *name, mode_t mode) {
    char *path = path_in_remains(name);
    assert_int_equal(
        (mode & S_IFMT) == S_IFDIR ? mkdir(path, 0700) : mknod(path, mode | 0600, 0), 0);
    free(path);
}

static int bind_in_remains(const char *name) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s/%s", remains, name);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (const struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(fd, 1), 0);
    return fd;
}

static void play_remains(int output) {
    char byte;
    int ends[2];
    struct guardian *guardian = start_guardian(NULL);
    for (size_t i = 0; i < sizeof things / sizeof *things; i++) {
        char *path = path_in_remains(things[i].name);
        guardian_remove_at_end(guardian, things[i].kind, path);
        free(path);
    }
    /* It has heard of all when it lets go of a connection that came after them. */
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
        _exit(1);
    }
    guardian_hold_connection(guardian, ends[0]);
    close(ends[0]);
    guardian_hold_connection(guardian, -1);
    if (read(ends[1], &byte, 1) != 0) {
        _exit(1);
    }
    say_number(output, guardian_pid(guardian));
}

TEST(killed_agent_leaves_nothing_that_nobody_uses) {
    assert_non_null(mkdtemp(remains));
    make_in_remains("fifo", S_IFIFO);
    make_in_remains("fifo_that_is_read", S_IFIFO);
    make_in_remains("file_in_its_place", S_IFREG);
    close(bind_in_remains("socket"));
    int listener = bind_in_remains("socket_that_listens");
    make_in_remains("directory", S_IFDIR);
    make_in_remains("directory/below", S_IFDIR);
    make_in_remains("directory_with_a_file", S_IFDIR);
    make_in_remains("directory_with_a_file/file", S_IFREG);
    make_in_remains("tree", S_IFDIR);
    make_in_remains("tree/file", S_IFREG);
    char *path = path_in_remains("fifo_that_is_read");
    int reader = open(path, O_RDWR | O_CLOEXEC);
    free(path);
    struct agent agent = start_agent(play_remains);
    pid_t guardian = read_number(&agent);
    make_in_remains("later_tree", S_IFDIR);
    assert_int_equal(kill(agent.pid, SIGKILL), 0);
    assert_nothing_is_left(&agent);
    wait_for_stranger(guardian);
    for (size_t i = 0; i < sizeof things / sizeof *things; i++) {
        struct stat status;
        path = path_in_remains(things[i].name);
        if ((lstat(path, &status) == 0) != things[i].stays) {
            fail_msg("%s", path);
        }
        free(path);
    }
    close(reader);
    close(listener);
    char *command = text_format("rm -r '%s'", remains);
    assert_int_equal(system(command), 0);
    free(command);
}

/* What a family tells the guardian. A worker leaves a child behind, which is then killed. Only
 * after that may the session's number be reused. */
struct family_play {
    struct event_loop *loop;
    struct process_family *family;
};

static void signal_leftovers(void *context, pid_t pid, const struct process_exit *how) {
    struct family_play *play = context;
    (void)pid;
    (void)how;
    process_family_signal(play->family, SIGTERM);
}

static void stop_loop(void *context) {
    struct family_play *play = context;
    event_loop_stop(play->loop);
}

TEST(family_tells_the_guardian_which_sessions_are_over) {
    int ends[2]; /* used in place of the guardian's socket, so that the test can read the notices */
    struct guardian *guardian;
    assert_int_equal(guardian_start(NULL, false, &guardian, NULL), FAILURE_NONE);
    pid_t pid = guardian_pid(guardian);
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    assert_true(dup2(ends[0], guardian_descriptor(guardian)) >= 0);
    struct family_play play;
    const struct process_family_events events = {signal_leftovers, stop_loop, NULL, &play, NULL};
    const struct process_family_marks unmarked = {0};
    assert_int_equal(event_loop_new(&play.loop, NULL), FAILURE_NONE);
    assert_int_equal(
        process_family_new(play.loop, &events, &unmarked, guardian, &play.family, NULL),
        FAILURE_NONE);
    struct process process =
        processes_start_shell("sleep 1000 & exit 0", -1, guardian_descriptor(guardian));
    process_family_add(play.family, &process, 0);
    event_loop_run(play.loop);
    struct guardian_notice notice;
    assert_int_equal(recv(ends[1], &notice, sizeof notice, MSG_DONTWAIT), sizeof notice);
    assert_int_equal(notice.kind, GUARDIAN_SESSION_BEGINS);
    assert_int_equal(notice.leader, process.pid);
    assert_true(notice.start_time > 0);
    assert_int_equal(recv(ends[1], &notice, sizeof notice, MSG_DONTWAIT), sizeof notice);
    assert_int_equal(notice.kind, GUARDIAN_SESSION_ENDS);
    assert_int_equal(notice.leader, process.pid);
    process_family_free(play.family);
    assert_true(event_loop_free(play.loop));
    guardian_free(guardian);
    close(ends[0]);
    close(ends[1]);
    wait_for_stranger(pid);
    processes_assert_no_children();
}
