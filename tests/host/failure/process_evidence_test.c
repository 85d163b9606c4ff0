/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/bytes.h"
#include "host/failure/death_evidence.h"
#include "host/loop/files.h"
#include "processes.h"
#include "wire/failure/kernel_text.h"

#define MEMORY_LIMIT "33554432" /* 32 MiB */

/* Starts the script, waits for its end and describes it. */
static void describe_shell(
    struct process_evidence *evidence, const char *script, struct text *out) {
    struct process process = processes_start_shell(script, -1, -1);
    siginfo_t info;
    assert_int_equal(waitid(P_PID, (id_t)process.pid, &info, WEXITED | WNOWAIT), 0);
    struct process_exit how = {.is_signal = info.si_code != CLD_EXITED,
        .value = info.si_status,
        .has_dumped_core = info.si_code == CLD_DUMPED};
    process_evidence_describe(evidence, process.pid, &how, out);
    processes_wait(&process);
}

TEST(ordinary_ends_leave_no_evidence) {
    struct process_evidence *evidence = process_evidence_new();
    struct text text = {0};
    process_evidence_begin(evidence);
    describe_shell(evidence, "exit 0", &text);
    describe_shell(evidence, "kill -TERM $$", &text);
    assert_string_equal(text_string(&text), "");
    text_clear(&text);
    process_evidence_free(evidence);
}

TEST(signal_is_explained) {
    struct process_evidence *evidence = process_evidence_new();
    struct text text = {0};
    describe_shell(evidence, "ulimit -c 0; kill -SEGV $$", &text);
    assert_true(text_starts_with(text_string(&text), "invalid memory access"));
    text_clear(&text);
    process_evidence_free(evidence);
}

TEST(core_dump_is_mentioned) {
    struct process_evidence *evidence = process_evidence_new();
    struct process_exit how = {.is_signal = true, .value = SIGSEGV, .has_dumped_core = true};
    struct text text = {0};
    process_evidence_describe(evidence, getpid(), &how, &text);
    assert_true(text_starts_with(text_string(&text), "invalid memory access; core dump"));
    text_clear(&text);
    process_evidence_free(evidence);
}

TEST(nothing_is_described_without_evidence) {
    process_evidence_free(NULL);
}

static bool write_file(const char *directory, const char *file, const char *value) {
    char *path = text_format("%s/%s", directory, file);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    free(path);
    if (fd == -1) {
        return false;
    }
    bool is_written = write(fd, value, strlen(value)) == (ssize_t)strlen(value);
    close(fd);
    return is_written;
}

/* Makes a control group with a memory limit below our own; NULL where that is not possible. */
static char *make_limited_group(void) {
    struct bytes bytes;
    bytes_init(&bytes, 65536);
    struct slice path;
    char *directory = NULL;
    if (whole_file_read("/proc/self/cgroup", true, 65536, &bytes, NULL) != FAILURE_NONE) {
        return NULL;
    }
    bool is_unified = kernel_text_find_cgroup(bytes_slice(&bytes), "memory", &path) != FAILURE_NONE;
    if (!is_unified || kernel_text_find_cgroup(bytes_slice(&bytes), "", &path) == FAILURE_NONE) {
        directory = text_format("/sys/fs/cgroup%s%.*s/process_evidence_test_%d",
            is_unified ? "" : "/memory", (int)path.length, (const char *)path.data, (int)getpid());
    }
    bytes_clear(&bytes);
    if (directory == NULL || mkdir(directory, 0755) != 0) {
        free(directory);
        return NULL;
    }
    if (!write_file(directory, is_unified ? "memory.max" : "memory.limit_in_bytes", MEMORY_LIMIT)) {
        rmdir(directory);
        free(directory);
        return NULL;
    }
    /* Where there is swap, the limit must include it. */
    write_file(directory, is_unified ? "memory.swap.max" : "memory.memsw.limit_in_bytes",
        is_unified ? "0" : MEMORY_LIMIT);
    return directory;
}

/* Acts as an agent inside the group. Prints what it knows about a worker that uses all the
 * memory. */
static _Noreturn void play_agent(const char *directory, int output) {
    char pid[16];
    snprintf(pid, sizeof pid, "%d", (int)getpid());
    if (!write_file(directory, "cgroup.procs", pid)) {
        _exit(1);
    }
    struct process_evidence *evidence = process_evidence_new();
    process_evidence_begin(evidence);
    struct text text = {0};
    describe_shell(evidence, "exec tail -n 1 /dev/zero", &text);
    text_append(&text, "\n");
    ssize_t written = write(output, text_string(&text), text.length);
    _exit(written == (ssize_t)text.length ? 0 : 1);
}

TEST(victim_of_the_oom_killer_is_recognised) {
    char *directory = make_limited_group();
    if (directory == NULL) {
        SKIP_BECAUSE("no control group with a memory limit can be made here");
    }
    int output[2];
    processes_make_pipe(output);
    pid_t agent = fork();
    if (agent == 0) {
        play_agent(directory, output[1]);
    }
    close(output[1]);
    char line[512];
    processes_read_line(output[0], line, sizeof line);
    int status;
    assert_int_equal(waitpid(agent, &status, 0), agent);
    close(output[0]);
    assert_int_equal(rmdir(directory), 0);
    free(directory);
    assert_int_equal(status, 0);
    /* An agent that may read the kernel's log is certain; other agents only see the count. */
    bool is_certain = text_starts_with(line,
        "killed by the kernel's OOM killer: its control group's memory limit was reached (the "
        "process held ");
    bool is_likely = text_starts_with(line, "most likely killed by the kernel's OOM killer");
    print_message("%s\n", line);
    assert_true(is_certain || is_likely);
}
