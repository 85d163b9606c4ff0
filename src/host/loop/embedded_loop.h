/* SPDX-License-Identifier: BSD-3-Clause */
/* An event loop inside a program that has a loop of its own. It gives that program one descriptor,
 * which is readable whenever there is something to do, and does it when it is called. It leaves the
 * program's signals alone: a connection that is closed by its other side does not end a program
 * that has SIGPIPE's default.
 *
 * Only the process that has made the loop may use it: a child that was forked shares its kernel
 * objects, and would disturb the parent. */
#ifndef MUSTER_HOST_LOOP_EMBEDDED_LOOP_H
#define MUSTER_HOST_LOOP_EMBEDDED_LOOP_H

#include <stdbool.h>

#include "base/failure.h"
#include "host/loop/event_loop.h"

struct embedded_loop;

__attribute__((warn_unused_result)) enum failure_code embedded_loop_new(
    struct embedded_loop **out_embedded, struct failure *failure);

/* Everything on the loop must have been freed before; not from inside a callback. Accepts NULL. */
void embedded_loop_free(struct embedded_loop *embedded);

/* The loop, to put things on. After that, and after they were given something to do, call
 * embedded_loop_note. */
struct event_loop *embedded_loop_inside(struct embedded_loop *embedded);

/* To be polled for reading, by the program's own loop. */
int embedded_loop_fd(const struct embedded_loop *embedded);

/* Makes the descriptor readable when what is on the loop wants to run. */
void embedded_loop_note(struct embedded_loop *embedded);

/* Does what there is to do, and does not wait. */
void embedded_loop_process(struct embedded_loop *embedded);

/* Does what there is to do, and waits, until `*is_done`; callbacks set it and call
 * event_loop_stop. */
void embedded_loop_run_until(struct embedded_loop *embedded, const bool *is_done);

/* Whether one of the two above is under way: then neither may be called. */
bool embedded_loop_is_running(const struct embedded_loop *embedded);

/* False in a child that was forked since. */
bool embedded_loop_is_of_this_process(const struct embedded_loop *embedded);

#endif
