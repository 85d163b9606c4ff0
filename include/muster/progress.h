/* SPDX-License-Identifier: BSD-3-Clause */
/* How far a worker is: it tells the agent of its steps, with a store to memory that both share and
 * without a system call (`muster run --progress auto`, which is the default with --standby).
 * `muster status` shows the step and the rate, when all ranks train again after a restart, and how
 * many steps were taken once more.
 *
 *     for (int64_t step = first; step < last; step++) {
 *         train();
 *         muster_progress_step(step);
 *         if (step % 1000 == 0) {
 *             save();
 *             muster_progress_checkpoint(step);
 *
 * Under another launcher, with --progress off, and in children of a worker these functions do
 * nothing. Any thread may call them; of calls at the same time one counts. They never fail and
 * never wait. */
#ifndef MUSTER_PROGRESS_H
#define MUSTER_PROGRESS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* This worker has taken step `n`, which is its number in the whole training, and is not counted
 * from the last start on. A negative one is passed over. */
void muster_progress_step(int64_t n);

/* What a restart would go on from has step `n`: it has been saved. A negative one is passed over.
 */
void muster_progress_checkpoint(int64_t n);

/* From here to the end this thread waits for other ranks, or for data. An end without a beginning
 * is passed over, and so is a beginning in a wait. */
void muster_progress_wait_begin(void);
void muster_progress_wait_end(void);

/* The memory, for other languages. MUSTER_PROGRESS is the number of a descriptor, usually 3. Where
 * another file has that number by now, the page is in the one descriptor of the process whose link
 * in /proc/self/fd begins with "/memfd:muster-" and which has the mark. It is a file of at least
 * 4,096 bytes. Map the first page shared, to read and write. From byte MUSTER_PROGRESS_OFFSET on it
 * has words of 64 bits in the order of the machine's bytes. Times are nanoseconds of
 * CLOCK_MONOTONIC. The agent writes the first three words: use the page when MUSTER_PROGRESS_MARK
 * is MUSTER_PROGRESS_MAGIC, and MUSTER_PROGRESS_WORKER is your process id (or it is 0, and
 * MUSTER_PROGRESS_AGENT is your parent's). The rest is yours. MUSTER_PROGRESS_COUNT is written
 * last. */
#define MUSTER_PROGRESS_OFFSET 2048
#define MUSTER_PROGRESS_MAGIC UINT64_C(0x3153534552474f52)

enum muster_progress_word {
    MUSTER_PROGRESS_MARK,
    MUSTER_PROGRESS_AGENT,      /* its process id */
    MUSTER_PROGRESS_WORKER,     /* the same; 0: it has just been started */
    MUSTER_PROGRESS_COUNT,      /* of the steps that this process has taken */
    MUSTER_PROGRESS_STEP,       /* the number of the last one … */
    MUSTER_PROGRESS_STEPPED,    /* … and when it was taken */
    MUSTER_PROGRESS_FIRST_STEP, /* the number of the first one … */
    MUSTER_PROGRESS_FIRST,      /* … and when it was taken */
    MUSTER_PROGRESS_SOURCE,     /* 1: steps of an optimizer are counted; 2: the program has told */
    MUSTER_PROGRESS_SAVES,      /* how many checkpoints have been told */
    MUSTER_PROGRESS_SAVED_STEP, /* the step of the last one … */
    MUSTER_PROGRESS_SAVED,      /* … and when it was told */
    MUSTER_PROGRESS_WAITED,     /* how long the process has waited, in nanoseconds */
    MUSTER_PROGRESS_WAITS,      /* since when it waits; 0: it does not */
    MUSTER_PROGRESS_WORD_COUNT,
};

#ifdef __cplusplus
}
#endif

#endif
