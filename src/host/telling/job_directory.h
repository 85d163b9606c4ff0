/* SPDX-License-Identifier: BSD-3-Clause */
/* The directory in which a user's agents announce themselves to that user's other programs on this
 * machine. An announcement is a file; its maker holds a lock on it. One without a lock belongs to
 * an agent that was killed: whoever looks removes it. So no process id that another process has
 * got meanwhile can be mistaken for an agent. A directory that others could write to is not used.
 * Where the maker gives the file a name of its own, other agents find that its process has ended.
 *
 * All of this waits for a disk; agents do it on a thread that may be left behind
 * (host/loop/blocking_pool). */
#ifndef MUSTER_HOST_TELLING_JOB_DIRECTORY_H
#define MUSTER_HOST_TELLING_JOB_DIRECTORY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/failure.h"
#include "base/text.h"
#include "wire/telling/job_announcement.h"

/* How many jobs are found at most; of more, any. */
#define JOB_DIRECTORY_MAXIMUM_JOBS 256

/* Of a name that an agent gives to its posting. */
#define JOB_POSTING_NAME_SIZE 33

/* Where the directory may be, best first: $MUSTER_RUNTIME_DIR and nothing else where that is set;
 * $XDG_RUNTIME_DIR/muster, /run/user/UID/muster and /tmp/muster-UID else. Appends. Does not look at
 * the disk. */
void job_directory_places(const struct text_list *environment, struct text_list *out_places);

/* A zeroed struct is none. */
struct job_posting {
    char *path; /* NULL: none */
    int lock_fd;
};

/* Writes the text into a new file in the first place that can be used, and makes the directory
 * there if need be (mode 0700). `name` is letters and digits that no other process gives; NULL or
 * empty: any. Removes what killed agents have left behind there, of the first few
 * files that it meets, so that the cost does not grow with the agents on this machine.
 * FAILURE_INVALID when a place was refused, FAILURE_SYSTEM when none can be used otherwise; the
 * message tells of each. */
__attribute__((warn_unused_result)) enum failure_code job_directory_post(
    const struct text_list *places, const char *name, const char *text,
    struct job_posting *out_posting, struct failure *failure);

/* Writes the text over the one that the file has, which costs a fraction of a new file. False:
 * that cannot be done, since there is none or somebody has removed it; what the file says then is
 * not known. */
bool job_posting_rewrite(struct job_posting *posting, const char *text);

/* Removes the file. Nothing to do where there is none. */
void job_posting_remove(struct job_posting *posting);

/* An agent that may be of this machine, by the name of its posting. */
struct job_sighting {
    char name[JOB_POSTING_NAME_SIZE];
    bool has_died; /* its posting is there, and the kernel has taken its lock away */
};

/* Looks for each of them. Of an agent that has posted nothing here, on another machine or in
 * another container, nothing is known; nor where the directory may be shared by machines, which
 * need not see each other's locks. */
void job_directory_look(
    const struct text_list *places, struct job_sighting *sightings, size_t count);

/* A zeroed struct is an empty list. */
struct job_list {
    struct job_announcement *items;
    size_t count;
    size_t capacity;
};

/* The jobs announced in all of the places that have a workers' store, each once even where several
 * agents of it run here, in the order of their names. `out_refusals` gets a sentence for each place
 * that is not to be trusted. The caller clears both. */
void job_directory_find(
    const struct text_list *places, struct job_list *out_jobs, struct text_list *out_refusals);
void job_list_clear(struct job_list *jobs);

/* The same, of all agents that can be asked, one by one. */
void job_directory_find_agents(
    const struct text_list *places, struct job_list *out_agents, struct text_list *out_refusals);

#endif
