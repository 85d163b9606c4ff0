/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/failure/death_explanation.h"

#include <inttypes.h>
#include <string.h>

#include "core/workers/signal_name.h"

/* What a signal usually means that the kernel or the program itself has sent. Signals that people
 * and job managers send (SIGTERM, SIGINT, …) need no explanation. */
static const char *signal_meaning(int signal) {
    static const struct {
        const char *name;
        const char *meaning;
    } meanings[] = {
        {"SIGSEGV", "invalid memory access"},
        {"SIGBUS", "memory access that could not be served; often /dev/shm is full"},
        {"SIGABRT", "the program ended itself with abort(), as after a failed assertion"},
        {"SIGFPE", "arithmetic error, such as an integer division by zero"},
        {"SIGILL", "invalid instruction; often built for another kind of CPU"},
        {"SIGTRAP", "breakpoint or failed check in the program"},
        {"SIGSYS", "system call that a seccomp filter forbids"},
        {"SIGPIPE", "wrote to a pipe or connection that nobody reads"},
        {"SIGXCPU", "limit on CPU time reached, see ulimit -t"},
        {"SIGXFSZ", "limit on file size reached, see ulimit -f"},
    };
    for (size_t i = 0; i < sizeof meanings / sizeof *meanings; i++) {
        if (signal_number_from_name(meanings[i].name) == signal) {
            return meanings[i].meaning;
        }
    }
    return NULL;
}

/* Begins the next sentence. */
static void separate(struct text *out, size_t start) {
    if (out->length > start) {
        text_append(out, "; ");
    }
}

static void explain_recorded_kill(const struct death_facts *facts, struct text *out) {
    text_append(out, "killed by the kernel's OOM killer: ");
    text_append(out, facts->is_memory_cgroup_kill ? "its control group's memory limit was reached"
                                                  : "the machine's memory was used up");
    if (facts->resident_kib > 0) {
        text_append_format(out, " (the process held %" PRIu64 " MiB)", facts->resident_kib / 1024);
    }
}

/* Explains OOM kills that were counted, while the kernel's log does not say which processes were
 * killed. */
static void explain_counted_kills(const struct death_facts *facts, struct text *out) {
    bool may_be_victim = facts->exit.is_signal && facts->exit.value == SIGNAL_NUMBER_KILL;
    if (facts->counts_machine && !may_be_victim) {
        return; /* probably processes that do not belong to this job */
    }
    if (may_be_victim) {
        text_append_format(out, "%s killed by the kernel's OOM killer, which",
            facts->counts_machine ? "possibly" : "most likely");
    } else {
        text_append(out, "the kernel's OOM killer");
    }
    text_append_format(out, " ended %" PRIu64 " process%s %s meanwhile", facts->oom_kills,
        facts->oom_kills == 1 ? "" : "es",
        facts->counts_machine ? "on this machine" : "of this control group");
}

/* Expands a core pattern. Returns false when the pattern has parts that are not known afterwards
 * (the name of the command, the time, …). */
static bool expand_pattern(const struct death_facts *facts, struct text *path) {
    bool has_pid = false;
    for (const char *at = facts->core_pattern; *at != '\0'; at++) {
        if (*at != '%') {
            text_append_bytes(path, at, 1);
            continue;
        }
        at++;
        if (*at == 'p' || *at == 'P') {
            text_append_format(path, "%" PRId64, facts->pid);
            has_pid = true;
        } else if (*at == 's') {
            text_append_format(path, "%d", facts->exit.value);
        } else if (*at == '%') {
            text_append(path, "%");
        } else {
            return false;
        }
    }
    if (facts->core_uses_pid && !has_pid) {
        text_append_format(path, ".%" PRId64, facts->pid);
    }
    return true;
}

static void explain_core(const struct death_facts *facts, struct text *out) {
    const char *pattern = facts->core_pattern;
    if (pattern == NULL || *pattern == '\0') {
        text_append(out, "core dumped");
        return;
    }
    if (*pattern == '|') {
        const char *program = pattern + 1 + strspn(pattern + 1, " ");
        text_append_format(out, "core dump handed to %.*s", (int)strcspn(program, " "), program);
        return;
    }
    struct text path = {0};
    if (expand_pattern(facts, &path)) {
        text_append_format(out, "core dumped to '%s'", text_string(&path));
    } else {
        text_append_format(out, "core dumped to a file named by the pattern '%s'", pattern);
    }
    if (*pattern != '/') {
        text_append(out, " in the worker's working directory");
    }
    text_clear(&path);
}

void death_explain(const struct death_facts *facts, struct text *out) {
    const struct process_exit *exit = &facts->exit;
    size_t start = out->length;
    bool is_success = !exit->is_signal && exit->value == 0;
    if (facts->has_kernel_record) {
        explain_recorded_kill(facts, out);
    } else if (facts->oom_kills > 0 && !is_success) {
        explain_counted_kills(facts, out);
    }
    const char *meaning = exit->is_signal ? signal_meaning(exit->value) : NULL;
    if (meaning != NULL) {
        separate(out, start);
        text_append(out, meaning);
    }
    if (exit->is_signal && exit->has_dumped_core) {
        separate(out, start);
        explain_core(facts, out);
    }
}
