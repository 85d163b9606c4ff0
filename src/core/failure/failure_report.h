/* SPDX-License-Identifier: BSD-3-Clause */
/* Formats the report about a failed worker group. It begins with the line for which log scrapers
 * look. Shape, labels and columns are those of ChildFailedError.format_msg in
 * torch/distributed/elastic/multiprocessing/errors/__init__.py. In contrast to it, the root cause
 * comes first, and what the kernel knows is said in words; where the worker's stderr went to a
 * file, `log_file` is its path, and its last lines follow. The caller says which failure is the
 * root cause, and which failures are consequences of it. */
#ifndef MUSTER_CORE_FAILURE_FAILURE_REPORT_H
#define MUSTER_CORE_FAILURE_FAILURE_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/duration.h"
#include "base/text.h"
#include "core/workers/worker_group.h"

/* What people see of the end of a worker's output file: its last lines, fit for a terminal. */

#define LAST_LINES_MAXIMUM 20
/* How much of the end of a file is looked at, in bytes. */
#define LAST_LINES_WINDOW 4096u

/* Appends at most LAST_LINES_MAXIMUM lines, each with its newline, and no more bytes than
 * LAST_LINES_WINDOW and a newline. `end` is the end of the file; of a longer one only the last
 * LAST_LINES_WINDOW bytes count. `is_cut` says that the file has more before it; then its first
 * line, which may have lost its beginning, is left out where others follow. Of a line that was
 * overwritten with carriage returns (a progress bar) only what stands there in the end is kept.
 * Other control characters and bytes that are no UTF-8 become '?', see utf8_make_printable. Bytes
 * of zero are such control characters, too. */
void last_lines_append(struct slice end, bool is_cut, struct text *out);

/* Describes in one line what a process was doing that is about to be killed: "in uninterruptible
 * sleep in read (nfs_wait), 12 threads, at train.py:17 in step". The whole evidence is in a file.
 */

/* Of one stack. */
#define HANG_SUMMARY_FRAMES_MAXIMUM 16

/* A zeroed struct is valid: nothing is known of the process. All members but the last two are about
 * its first thread. */
struct hang_summary {
    char state;     /* as in /proc/<pid>/stat; 0: unknown, it may be gone */
    char *call;     /* the system call in which it is; NULL: none, or unknown */
    char *waits_in; /* the function of the kernel in which it sleeps, or NULL */
    char *stack; /* lines of Python code, the innermost one first, each with its newline; or NULL */
    size_t thread_count;
    int file_error; /* the first errno that kept some of the evidence from its file; 0: none */
};

void hang_summary_clear(struct hang_summary *summary);

/* The caller clears `out_copy` too. */
void hang_summary_copy(const struct hang_summary *summary, struct hang_summary *out_copy);

/* What is known in one line. */
void hang_summary_append(const struct hang_summary *summary, struct text *out);

/* Explains the end of a process in words, from facts that the host has gathered: what a signal
 * usually means, whether the kernel's OOM killer ended the process, and where the core dump is. */

struct death_facts {
    int64_t pid;
    struct process_exit exit;
    bool has_kernel_record; /* the kernel's log says that the OOM killer ended this pid */
    uint64_t resident_kib;  /* its anonymous memory in that log; 0: unknown */
    /* The limit of its cgroup was reached, not the machine's. */
    bool is_memory_cgroup_kill;
    uint64_t oom_kills;       /* OOM kills counted while the process ran */
    bool counts_machine;      /* they are of the whole machine, not of the worker's cgroup */
    const char *core_pattern; /* /proc/sys/kernel/core_pattern without newline, or NULL */
    bool core_uses_pid;       /* /proc/sys/kernel/core_uses_pid */
};

/* Appends the explanation: sentences joined by "; ", without a full stop at the end. Appends
 * nothing for an ordinary exit, unless there were OOM kills. */
void death_explain(const struct death_facts *facts, struct text *out);

/* What a node knows about one failed worker. The report uses it, and the node tells it to the other
 * nodes when the job fails or restarts because of this worker (wire/failure_json spells it). This
 * module does not decide which failure is the root cause: on one node worker_group decides; in a
 * job it is the failure that was written to the store first. */

/* The length of the longest one-line form in bytes. With its NUL it fits into the reason of the
 * rendezvous record. */
#define FAILURE_ACCOUNT_LINE_MAXIMUM 255

/* Owns its strings; a zeroed struct is valid. */
struct failure_account {
    char *host; /* the name of its node in reports */
    char *node; /* the identity of the node in the rendezvous, or NULL */
    int group_rank;
    int rank;
    int local_rank;
    int role_rank;
    int64_t seconds;          /* Unix time: of the error file, else of the observation */
    int64_t pid;              /* 0 when the worker was not started */
    struct process_exit exit; /* not set with a start_message, and when stuck */
    char *start_message;      /* why the worker could not be started, or NULL */
    struct duration stuck;    /* how long it hung in the kernel until it was given up, or zero */
    char *error_file;         /* its path on that node, or NULL */
    char *log_file;           /* of its stderr, on that node; NULL: stderr goes to no file */
    char *message;            /* traceback or message from the error file, or NULL */
    bool is_message_object;   /* the message was a JSON object, usually with a traceback */
    char *summary;            /* "ValueError: boom", or NULL */
    char *evidence;           /* what the kernel knows besides the exit status, or NULL */
    char *note;               /* "unreadable error file: …", or NULL */
};

void failure_account_clear(struct failure_account *account);
/* `out_copy` is cleared first. */
void failure_account_copy(const struct failure_account *account, struct failure_account *out_copy);

/* Appends one line of at most FAILURE_ACCOUNT_LINE_MAXIMUM bytes of UTF-8 without control
 * characters: "rank 5 (local_rank 1) on node2 failed: exit code 1 (ValueError: boom)". */
void failure_account_describe(const struct failure_account *account, struct text *out);

/* Judges the failure of a worker when the root cause of the job's end is on another node: it is a
 * consequence of that cause, or independent of it. The judgement uses how the worker ended. For a
 * connection that may have broken it also uses the error messages of PyTorch's communication
 * libraries. It can be wrong, so only the report uses it. */

enum failure_judgement {
    FAILURE_JUDGED_INDEPENDENT,  /* nothing in it points to another node */
    FAILURE_JUDGED_TERMINATED,   /* ended by the signal that stopped the worker group */
    FAILURE_JUDGED_DISCONNECTED, /* it lost its connection to another worker, or waited too long for
                                    it */
    FAILURE_JUDGED_UNKNOWN,      /* it left no message */
};

enum failure_judgement failure_judge(
    const struct failure_account *account, bool is_from_our_signal);

/* A phrase for the report, for example "consequence: ended by the launcher". */
const char *failure_judgement_text(enum failure_judgement judgement);

/* Local calendar time. The caller has computed it. */
struct failure_report_time {
    int year;  /* 2026 */
    int month; /* 1-12 */
    int day;
    int hour;
    int minute;
    int second;
};

/* One failed worker. */
struct failure_report_entry {
    struct failure_report_time time;       /* the time of the account */
    const struct failure_account *account; /* borrowed */
    const char *last_lines; /* of its log file, each with its newline; NULL: they are not known */
    /* failure_judgement_text, when the root cause is on another node; else NULL */
    const char *judgement;
};

/* The job whose workers have failed. */
struct failure_report_job {
    const char *name; /* from worker_command_display_name */
    bool is_python;   /* PyTorch's hint about tracebacks is for its workers */
};

/* Appends the report, from the line `torch.distributed.…ChildFailedError: ` to the closing rule and
 * a newline. `entries` are in the order in which they were observed; the report numbers them in
 * this order. `root` is an index into them. */
void failure_report_format(struct text *out, const struct failure_report_job *job,
    const struct failure_report_entry *entries, size_t count, size_t root);

#endif
