/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/failure/death_evidence.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "core/failure/failure_report.h"
#include "host/loop/clock.h"
#include "host/loop/files.h"
#include "wire/failure/kernel_text.h"

enum failure_code error_file_read(
    const char *path, size_t ceiling, struct bytes *out_bytes, struct failure *failure) {
    return whole_file_read(path, false, ceiling, out_bytes, failure);
}

/* Whether the place, and not the disk, is what forbids a new file. */
static bool is_about_the_place(int error) {
    return error == EACCES || error == EPERM || error == EROFS || error == EBUSY ||
           error == EXDEV || error == ENAMETOOLONG;
}

enum failure_code error_file_write(
    const char *path, struct slice content, struct failure *failure) {
    struct failure reason;
    if (shared_place_check(path, &reason) != FAILURE_NONE) {
        return failure_set(
            failure, reason.code, "cannot write the error file %s: %s", path, reason.message);
    }
    char *target = realpath(path, NULL); /* a symbolic link stays; its target is replaced */
    const char *place = target != NULL ? target : path;
    int error = EPERM;
    if (shared_place_can_be_replaced(place)) {
        error = shared_place_replace(place, content);
    }
    if (is_about_the_place(error)) {
        error = shared_place_write(place, content);
    }
    free(target);
    if (error != 0) {
        return failure_set_system(failure, error, "cannot write the error file %s", path);
    }
    return FAILURE_NONE;
}

/* Process evidence. */

/* Larger than any of these files, and than one record of the kernel log (8 KiB). */
#define FILE_CEILING 65536
#define RECORD_SIZE 8193

/* The maximum number of OOM kills remembered per attempt. The list also gets killed children of
 * workers, but only workers are looked up. */
#define MOST_VICTIMS 4096

struct process_evidence {
    int kernel_log; /* /dev/kmsg, non-blocking; -1 when permission is missing */
    struct kernel_oom_kill *victims;
    size_t victim_count;
    size_t victim_capacity;
    char *counter_path; /* the file with the "oom_kill" count of this process' cgroup; NULL: there
                           is none */
    uint64_t kills_before;
};

/* Reads a kernel file; the result is empty when it cannot be read. The caller clears the bytes. */
static struct slice read_file(const char *path, struct bytes *bytes) {
    bytes_init(bytes, FILE_CEILING);
    if (whole_file_read(path, true, FILE_CEILING, bytes, NULL) != FAILURE_NONE) {
        bytes_clear(bytes);
    }
    return bytes_slice(bytes);
}

static bool read_kill_count(const char *path, uint64_t *out_count) {
    struct bytes bytes;
    bool has_count =
        kernel_text_read_counter(read_file(path, &bytes), "oom_kill", out_count) == FAILURE_NONE;
    bytes_clear(&bytes);
    return has_count;
}

/* A cgroup hierarchy: where it is mounted, and the file in it that counts OOM kills. */
struct hierarchy {
    const char *controller; /* its name in /proc/self/cgroup */
    const char *mount;
    const char *file;
};

static const struct hierarchy hierarchies[] = {
    {"", "/sys/fs/cgroup", "memory.events"},
    {"", "/sys/fs/cgroup/unified", "memory.events"},
    {"memory", "/sys/fs/cgroup/memory", "memory.oom_control"},
};

/* Returns the path of the counting file if it has a count, else NULL. In a container the path in
 * /proc/self/cgroup may be that of the host, while the container sees its own cgroup as the
 * root. */
static char *try_hierarchy(const struct hierarchy *hierarchy, struct slice cgroups) {
    struct slice path;
    uint64_t count;
    if (kernel_text_find_cgroup(cgroups, hierarchy->controller, &path) != FAILURE_NONE) {
        return NULL;
    }
    char *whole = text_format(
        "%s%.*s/%s", hierarchy->mount, (int)path.length, (const char *)path.data, hierarchy->file);
    if (read_kill_count(whole, &count)) {
        return whole;
    }
    free(whole);
    whole = text_format("%s/%s", hierarchy->mount, hierarchy->file);
    if (read_kill_count(whole, &count)) {
        return whole;
    }
    free(whole);
    return NULL;
}

static char *find_counter(void) {
    struct bytes bytes;
    struct slice cgroups = read_file("/proc/self/cgroup", &bytes);
    char *path = NULL;
    for (size_t i = 0; path == NULL && i < sizeof hierarchies / sizeof *hierarchies; i++) {
        path = try_hierarchy(&hierarchies[i], cgroups);
    }
    bytes_clear(&bytes);
    return path;
}

/* Fallback: a count for the whole machine. */
#define MACHINE_COUNTER "/proc/vmstat"

struct process_evidence *process_evidence_new(void) {
    struct process_evidence *evidence = memory_allocate(sizeof *evidence);
    evidence->kernel_log = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    evidence->counter_path = find_counter();
    if (evidence->counter_path == NULL) {
        evidence->counter_path = memory_duplicate_string(MACHINE_COUNTER);
    }
    process_evidence_begin(evidence);
    return evidence;
}

void process_evidence_free(struct process_evidence *evidence) {
    if (evidence == NULL) {
        return;
    }
    if (evidence->kernel_log != -1) {
        close(evidence->kernel_log);
    }
    free(evidence->counter_path);
    free(evidence->victims);
    free(evidence);
}

void process_evidence_begin(struct process_evidence *evidence) {
    evidence->victim_count = 0;
    if (evidence->kernel_log != -1) {
        lseek(evidence->kernel_log, 0, SEEK_END);
    }
    if (evidence->counter_path != NULL &&
        !read_kill_count(evidence->counter_path, &evidence->kills_before)) {
        free(evidence->counter_path);
        evidence->counter_path = NULL;
    }
}

static void keep_victim(struct process_evidence *evidence, const struct kernel_oom_kill *kill) {
    if (evidence->victim_count < MOST_VICTIMS) {
        evidence->victims = memory_reserve(evidence->victims, &evidence->victim_capacity,
            evidence->victim_count + 1, sizeof *evidence->victims);
        evidence->victims[evidence->victim_count++] = *kill;
    }
}

/* Reads what the kernel has logged since the last call. Each read gives one record. */
static void read_kernel_log(struct process_evidence *evidence) {
    char record[RECORD_SIZE];
    for (;;) {
        ssize_t length = read(evidence->kernel_log, record, sizeof record);
        if (length == -1 && (errno == EPIPE || errno == EINTR)) {
            continue; /* EPIPE: records were overwritten before we read them; go on with the next
                         one */
        }
        if (length <= 0) {
            return;
        }
        struct kernel_oom_kill kill;
        const struct slice text = {(const uint8_t *)record, (size_t)length};
        if (kernel_text_read_oom_kill(text, &kill) == FAILURE_NONE) {
            keep_victim(evidence, &kill);
        }
    }
}

static void look_for_victim(struct process_evidence *evidence, struct death_facts *facts) {
    if (evidence->kernel_log != -1) {
        read_kernel_log(evidence);
    }
    bool is_killed = facts->exit.is_signal && facts->exit.value == SIGKILL;
    for (size_t i = 0; is_killed && i < evidence->victim_count; i++) {
        if (evidence->victims[i].pid == facts->pid) {
            facts->has_kernel_record = true;
            facts->resident_kib = evidence->victims[i].resident_kib;
            facts->is_memory_cgroup_kill = evidence->victims[i].is_memory_cgroup;
        }
    }
}

static void count_kills(const struct process_evidence *evidence, struct death_facts *facts) {
    uint64_t count;
    if (evidence->counter_path != NULL && read_kill_count(evidence->counter_path, &count) &&
        count > evidence->kills_before) {
        facts->oom_kills = count - evidence->kills_before;
        facts->counts_machine = text_equals(evidence->counter_path, MACHINE_COUNTER);
    }
}

/* Returns a copy of the pattern, or NULL. The caller frees it. */
static char *read_core_pattern(void) {
    struct bytes bytes;
    struct slice pattern = read_file("/proc/sys/kernel/core_pattern", &bytes);
    if (pattern.length > 0 && pattern.data[pattern.length - 1] == '\n') {
        pattern.length--;
    }
    char *string = pattern.length == 0
                       ? NULL
                       : text_format("%.*s", (int)pattern.length, (const char *)pattern.data);
    bytes_clear(&bytes);
    return string;
}

void process_evidence_describe(struct process_evidence *evidence, pid_t pid,
    const struct process_exit *how, struct text *out) {
    struct death_facts facts = {.pid = pid, .exit = *how};
    char *core_pattern = NULL;
    look_for_victim(evidence, &facts);
    count_kills(evidence, &facts);
    if (how->is_signal && how->has_dumped_core) {
        int uses_pid = 0;
        core_pattern = read_core_pattern();
        facts.core_pattern = core_pattern;
        facts.core_uses_pid = whole_file_read_integer("/proc/sys/kernel/core_uses_pid", &uses_pid,
                                  NULL) == FAILURE_NONE &&
                              uses_pid != 0;
    }
    death_explain(&facts, out);
    free(core_pattern);
}
