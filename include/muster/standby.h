/* SPDX-License-Identifier: BSD-3-Clause */
/* Standby workers for any program (`muster run --standby`): a second process of the same program
 * that has done its initialisation, and waits until a worker has died and it takes its place.
 *
 *     int main(int argument_count, char **arguments) {
 *         load_everything(arguments);       what takes long, and is the same for every worker
 *         if (muster_standby_wait() < 0) {
 *             perror("no standby workers");  this is a worker all the same
 *         }
 *         join_the_group(getenv("RANK"));
 *
 * The call comes once, in every worker, from the process that the agent has started, after what is
 * to be done ahead, and before the first look at what is different for each start: RANK and the
 * other variables of the launcher, the working directory, the clock. The process may have threads
 * by then if they use neither the environment nor the standard streams; it should hold no
 * connection, no lock and no child process.
 *
 * Link with -lmuster-standby. */
#ifndef MUSTER_STANDBY_H
#define MUSTER_STANDBY_H

#ifdef __cplusplus
extern "C" {
#endif

/* The exit status of a standby worker that cannot become a worker. The agent then starts one the
 * ordinary way. */
#define MUSTER_STANDBY_UNUSABLE 77

/* What a standby worker may print before the gate, on standard output and error each. */
#define MUSTER_STANDBY_PRINTED_MAXIMUM 65536

/* Returns 0 at once in a worker that was started the ordinary way, and where there is no agent or
 * it has no standby workers. There may be standby workers of this program from then on.
 *
 * In a standby worker it returns 1 when the process has become a worker. Then it has the whole
 * environment, the working directory and the standard streams of that worker: pointers that getenv
 * gave before are invalid, and what was read from there before must be read again. What was printed
 * before, through stdio or without it, has gone to the new streams. It does not return when the
 * agent needs no more standby workers or is gone: then the process ends with status 0 by _exit. Nor
 * when it cannot become a worker, because memory or descriptors are short, it has printed too much
 * or the agent speaks in another way: then it tells the agent why, and ends with status
 * MUSTER_STANDBY_UNUSABLE by _exit.
 *
 * Returns -1 with errno in a worker that was started the ordinary way and cannot tell the agent
 * that it has got here. The worker goes on, but there will be no standby workers. EINVAL: what the
 * agent has left in the environment makes no sense; EBADF: the descriptor did not get here, or is
 * another one by now, because something between agent and program has closed it; otherwise what
 * write(2) says.
 *
 * In each case MUSTER_STANDBY is no longer in the environment, and its descriptor is closed; what
 * muster_progress_step needs of it stays under a high number (muster/progress.h). A second call
 * returns 0. Signals may come meanwhile, and do not end the waiting. */
int muster_standby_wait(void);

#ifdef __cplusplus
}
#endif

#endif
