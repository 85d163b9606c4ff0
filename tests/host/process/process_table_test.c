/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <pthread.h>
#include <signal.h>

#include "host/process/process_table.h"
#include "processes.h"

TEST(own_entry_is_read) {
    struct kernel_process_stat stat;
    assert_true(process_table_read(getpid(), &stat));
    assert_int_equal(stat.pid, getpid());
    assert_int_equal(stat.parent, getppid());
    assert_int_equal(stat.group, getpgrp());
    assert_int_equal(stat.session, getsid(0));
    assert_int_equal(stat.state, 'R');
    assert_true(stat.start_time > 0);
}

TEST(missing_process_is_told) {
    struct process process = processes_start_shell("exit 0", -1, -1);
    processes_wait(&process);
    struct kernel_process_stat stat;
    assert_false(process_table_read(process.pid, &stat));
    struct process_ids children = {0};
    process_table_children(process.pid, &children);
    assert_int_equal(children.count, 0);
}

static void check_children(void (*list)(pid_t pid, struct process_ids *out_children)) {
    struct process processes[3];
    for (size_t i = 0; i < 3; i++) {
        processes[i] = processes_start_shell("exec sleep 1000", -1, -1);
    }
    struct process_ids children = {0};
    list(getpid(), &children);
    assert_int_equal(children.count, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_true(process_ids_have(&children, processes[i].pid));
        kill(processes[i].pid, SIGKILL);
        processes_wait(&processes[i]);
    }
    process_ids_clear(&children);
    list(getpid(), &children);
    assert_int_equal(children.count, 0);
}

TEST(children_are_listed) {
    check_children(process_table_children);
}

TEST(children_are_found_where_nobody_lists_them) {
    check_children(process_table_children_by_search);
}

struct thread_start {
    struct process process;
    int started[2];
    int finish[2];
};

static void *start_and_stay(void *context) {
    struct thread_start *start = context;
    char byte = 0;
    start->process = processes_start_shell("exec sleep 1000", -1, -1);
    if (write(start->started[1], &byte, 1) != 1 || read(start->finish[0], &byte, 1) != 0) {
        abort();
    }
    return NULL;
}

TEST(children_of_other_threads_are_listed) {
    struct thread_start start;
    pthread_t thread;
    char byte;
    processes_make_pipe(start.started);
    processes_make_pipe(start.finish);
    assert_int_equal(pthread_create(&thread, NULL, start_and_stay, &start), 0);
    assert_int_equal(read(start.started[0], &byte, 1), 1);
    struct process_ids children = {0};
    process_table_children(getpid(), &children);
    assert_int_equal(children.count, 1);
    assert_int_equal(children.items[0], start.process.pid);
    process_ids_clear(&children);
    close(start.finish[1]);
    pthread_join(thread, NULL);
    processes_wait(
        &start.process); /* killed by its parent-death signal, because the thread has ended */
    close(start.finish[0]);
    close(start.started[0]);
    close(start.started[1]);
}

TEST(signal_reaches_the_known_process) {
    struct process process = processes_start_shell("exec sleep 1000", -1, -1);
    struct kernel_process_stat stat;
    assert_true(process_table_read(process.pid, &stat));
    assert_true(process_table_signal(&stat, SIGTERM));
    assert_int_equal(WTERMSIG(processes_wait(&process)), SIGTERM);
    assert_false(process_table_signal(&stat, SIGTERM));
}

TEST(signal_spares_a_later_process_with_the_same_pid) {
    struct process process = processes_start_shell("exec sleep 1000", -1, -1);
    struct kernel_process_stat stat;
    assert_true(process_table_read(process.pid, &stat));
    stat.start_time--; /* pretends that the known process has ended and this one got its pid */
    assert_false(process_table_signal(&stat, SIGKILL));
    assert_int_equal(waitpid(process.pid, NULL, WNOHANG), 0);
    kill(process.pid, SIGKILL);
    processes_wait(&process);
}

static bool count_self(void *context, pid_t pid) {
    *(int *)context += pid == getpid();
    return true;
}

TEST(all_processes_are_visited) {
    int count = 0;
    assert_true(process_table_each(count_self, &count));
    assert_int_equal(count, 1);
}

TEST(own_children_are_found_by_asking_for_each) {
    struct process_ids children = {0};
    struct process one = processes_start_shell("exec sleep 1000", -1, -1);
    struct process other = processes_start_shell("exit 0", -1, -1);
    process_table_own_children(&children);
    assert_int_equal(children.count, 2);
    assert_true(process_ids_have(&children, one.pid));
    assert_true(process_ids_have(&children, other.pid)); /* not waited for, ended or not */
    kill(one.pid, SIGKILL);
    processes_wait(&one);
    processes_wait(&other);
    process_ids_clear(&children);
    process_table_own_children(&children);
    assert_int_equal(children.count, 0);
    assert_true(process_table_is_there());
}
