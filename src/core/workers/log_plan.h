/* SPDX-License-Identifier: BSD-3-Clause */
/* Plans where each stream of each worker goes, and its prefix. The plan depends only on the launch
 * configuration, so that no file is opened for a job whose settings contradict each other.
 * host/log/log_thread opens and writes the files. Matches
 * torch/distributed/elastic/multiprocessing/api.py DefaultLogsSpecs.reify and
 * torch/distributed/elastic/agent/server/local_elastic_agent.py (log line prefixes). */
#ifndef MUSTER_CORE_WORKERS_LOG_PLAN_H
#define MUSTER_CORE_WORKERS_LOG_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/text.h"
#include "core/launch/launch_config.h"

/* Turns the bytes that a worker writes into lines for the console. The bytes may arrive in any
 * pieces. A line is shown as Python's open(…, errors="replace") reads it, which
 * torch/distributed/elastic/multiprocessing/tail_log.py uses: "\r\n" and a single "\r" end a line
 * like "\n", and bytes that are not UTF-8 become U+FFFD. In contrast to tail_log.py an unfinished
 * line is held back until it is finished or the stream ends. Log files get the raw bytes. */

/* The longest line in bytes, without its newline. A longer line comes in pieces, each a line of its
 * own, so that a worker that never ends a line needs little memory. Pieces never split a character.
 */
#define LINE_SPLITTER_CEILING 65536

struct line {
    struct slice text;   /* UTF-8 that ends with a newline, which may have been added */
    uint64_t raw_length; /* how many bytes of input became this line */
};

/* A zeroed struct is a valid splitter at the start of a stream. */
struct line_splitter {
    struct text line;    /* the unfinished line, decoded */
    uint64_t raw_length; /* how many bytes of input became `line` */
    uint8_t sequence[4]; /* the beginning of an incomplete character */
    uint8_t sequence_length;
    bool has_return; /* the last byte was "\r": a "\n" after it belongs to the same newline */
};

/* Called for each line. The text is only valid during the call. */
typedef void line_visit(void *context, const struct line *line);

void line_splitter_clear(struct line_splitter *splitter);

/* Takes the next bytes of the stream, and gives every line that they finish. */
void line_splitter_feed(
    struct line_splitter *splitter, struct slice input, line_visit *visit, void *context);

/* The stream has ended: gives the rest as a line with a newline. Afterwards the splitter is as new.
 */
void line_splitter_finish(struct line_splitter *splitter, line_visit *visit, void *context);

/* Whether one of the needles occurs in the line with its newline. The empty needle occurs in every
 * line. */
bool line_matches(struct slice line, const struct text_list *needles);

/* The names in the log directory of a job. This module has only names; host/log_directory creates
 * and removes files. The tree is TorchElastic's (torch/distributed/elastic/multiprocessing/api.py
 * DefaultLogsSpecs):
 *
 *   <base>/<run id>_<8 random>/attempt_<restarts>/<local rank>/{stdout.log,stderr.log,error.json}
 *                                                 filtered_{stdout,stderr}.log
 *
 * Muster differs from it in two ways. <local rank>/hang_evidence.txt has the evidence of a worker
 * that had to be killed. And the directory of an attempt is never used twice: when nodes came or
 * went, the workers start again without using a restart, and get the directory
 * `attempt_<restarts>_round_<round>`. There PyTorch deletes the logs of the earlier start. */

#define LOG_TREE_RANDOM_LENGTH 8

enum log_tree_file {
    LOG_TREE_STDOUT,          /* <local rank>/stdout.log */
    LOG_TREE_STDERR,          /* <local rank>/stderr.log */
    LOG_TREE_ERROR,           /* <local rank>/error.json */
    LOG_TREE_HANG_EVIDENCE,   /* <local rank>/hang_evidence.txt */
    LOG_TREE_FILTERED_STDOUT, /* filtered_stdout.log, one for all ranks */
    LOG_TREE_FILTERED_STDERR, /* filtered_stderr.log */
};

/* Whether --log-dir asks for no files at all: it is exactly the text "/dev/null", as in torchrun.
 * NULL asks for files. */
bool log_tree_is_discarded(const char *log_dir);

/* Appends `path`, made absolute with `working_directory`, without "." and empty parts. ".." stays,
 * because only the kernel knows where it leads. */
void log_tree_append_absolute(struct text *text, const char *working_directory, const char *path);

/* Appends "<run id>_<random>". In the run id every `/` and every control byte becomes `_`. A run id
 * that is too long for LOG_TREE_NAME_MAXIMUM is cut between two UTF-8 characters. */
void log_tree_append_run_name(struct text *text, const char *run_id, const char *random);

/* One start of the workers. */
struct log_tree_attempt {
    int restart_count;
    int64_t round; /* of the rendezvous */
};

/* Appends the name of the directory: "attempt_3" for `incarnation` 0. The caller tries the next
 * incarnation when the name exists already: "attempt_3_round_7", "attempt_3_round_7.2",
 * "attempt_3_round_7.3" … */
void log_tree_append_attempt_name(
    struct text *text, const struct log_tree_attempt *attempt, int incarnation);

/* The path of one file below the directory of an attempt. The caller frees it. `local_rank` is
 * ignored for the filtered files. */
char *log_tree_file_path(const char *attempt_path, int local_rank, enum log_tree_file file);

enum log_destination {
    LOG_DESTINATION_INHERIT,          /* the worker writes to the agent's stream directly */
    LOG_DESTINATION_DISCARD,          /* /dev/null, because of --local-ranks-filter */
    LOG_DESTINATION_FILE,             /* its log file */
    LOG_DESTINATION_FILE_AND_CONSOLE, /* its log file, and line by line the agent's stream */
};

struct log_stream_plan {
    enum log_destination destination;
    bool is_filtered; /* matching lines also go to the filtered file of the attempt */
};

/* The worker that writes the lines. Strings are borrowed. */
struct log_worker {
    const char *role_name;
    const char *hostname; /* the result of gethostname */
    const char *node;     /* whose name is shown, where one console shows several; or NULL */
    int local_rank;
    int rank;
};

/* Whether the job has a log directory: false for --log-dir /dev/null. */
bool log_plan_has_directory(const struct launch_config *config);

/* The plan of one stream (LAUNCH_STREAM_STDOUT or _STDERR) of one worker. */
struct log_stream_plan log_plan_stream(
    const struct launch_config *config, int local_rank, int stream);

/* Whether the stream has a log file. */
bool log_destination_is_file(enum log_destination destination);

/* Whether any stream of any worker has one. */
bool log_plan_redirects(const struct launch_config *config, int worker_count);

/* Whether the user has asked for files. Error files alone are not asked for: a job does without. */
bool log_plan_asks_for_files(const struct launch_config *config, int worker_count);

/* The prefix of each line of this worker on the console: the template of the configuration with
 * role_name, local_rank, rank, hostname and host (the same, which torchrun does not know)
 * substituted. Without a template, or with an empty one,
 * it is "[<role_name><local_rank>]:", or "[<node>.<role_name><local_rank>]:" where nodes are told
 * apart. The caller frees it. */
char *log_plan_header(const struct launch_config *config, const struct log_worker *worker);

/* Appends the names in the prefix template that are unknown, for a warning. */
void log_plan_unknown_names(const struct launch_config *config, struct text_list *out_names);

/* What the names of this node's directories in --log-dir begin with: the run id, and the host's
 * name where other nodes may have theirs beside it. The caller frees it. */
char *log_plan_run_name(
    const struct launch_config *config, const char *run_id, const char *hostname);

/* The directory of --log-dir on this node, or NULL; the caller frees it. `${hostname}` and
 * `${host}` become the host's name, so that nodes that share a disk have directories of their own;
 * torchrun would make a directory of that very name. Where neither occurs, nothing is substituted.
 */
char *log_plan_directory(const struct launch_config *config, const char *hostname);

#endif
