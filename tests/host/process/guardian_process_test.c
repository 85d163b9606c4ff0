/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <signal.h>
#include <sys/socket.h>

#include "host/process/guardian.h"
#include "host/process/process_table.h"
#include "processes.h"

/* The guardian process as a child of the test, so that the test can wait for its end. The real
 * guardian is no child of its agent. */
struct fixture {
    int notices; /* the agent's end */
    pid_t pid;
};

static void set_up(struct fixture *fixture) {
    int notices[2];
    int ready[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, notices), 0);
    processes_make_pipe(ready);
    *fixture = (struct fixture){.notices = notices[0], .pid = fork()};
    if (fixture->pid == 0) {
        struct guardian_charge charge = {0};
        guardian_process_run(notices[1], ready[1], &charge);
    }
    close(notices[1]);
    close(ready[1]);
    int32_t pid;
    assert_int_equal(read(ready[0], &pid, sizeof pid), sizeof pid);
    assert_int_equal(pid, fixture->pid);
    close(ready[0]);
}

static void tell(struct fixture *fixture, enum guardian_notice_kind kind, pid_t leader) {
    struct guardian_notice notice = {.kind = kind, .leader = leader};
    struct kernel_process_stat stat;
    if (kind == GUARDIAN_SESSION_BEGINS && process_table_read(leader, &stat)) {
        notice.start_time = stat.start_time;
    }
    assert_int_equal(send(fixture->notices, &notice, sizeof notice, 0), sizeof notice);
}

static void wait_for_end(struct fixture *fixture) {
    int status;
    assert_int_equal(waitpid(fixture->pid, &status, 0), fixture->pid);
    assert_int_equal(status, 0);
}

static void end_of_the_socket_ends_the_sessions(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    struct process worker = processes_start_shell("exec sleep 1000", -1, -1);
    struct process other = processes_start_shell("exec sleep 1000", -1, -1);
    tell(&fixture, GUARDIAN_SESSION_BEGINS, worker.pid);
    tell(&fixture, GUARDIAN_SESSION_BEGINS, other.pid);
    tell(&fixture, GUARDIAN_SESSION_ENDS, other.pid);
    close(fixture.notices);
    wait_for_end(&fixture);
    assert_int_equal(WTERMSIG(processes_wait(&worker)), SIGKILL);
    assert_int_equal(waitpid(other.pid, NULL, WNOHANG), 0);
    kill(other.pid, SIGKILL);
    processes_wait(&other);
}

static void farewell_ends_the_guardian_alone(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    struct process worker = processes_start_shell("exec sleep 1000", -1, -1);
    tell(&fixture, GUARDIAN_SESSION_BEGINS, worker.pid);
    tell(&fixture, GUARDIAN_FAREWELL, 0);
    wait_for_end(&fixture); /* it ends although the socket is open */
    close(fixture.notices);
    assert_int_equal(waitpid(worker.pid, NULL, WNOHANG), 0);
    kill(worker.pid, SIGKILL);
    processes_wait(&worker);
}

static void packet_of_another_size_is_passed_over(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    assert_int_equal(send(fixture.notices, "x", 1, 0), 1);
    tell(&fixture, GUARDIAN_FAREWELL, 0);
    wait_for_end(&fixture);
    close(fixture.notices);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(end_of_the_socket_ends_the_sessions),
    cmocka_unit_test(farewell_ends_the_guardian_alone),
    cmocka_unit_test(packet_of_another_size_is_passed_over),
};

UNIT_TESTS(tests)
