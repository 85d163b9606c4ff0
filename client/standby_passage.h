/* SPDX-License-Identifier: BSD-3-Clause */
/* What the agent sends through the gate, as libmuster-standby takes it: the working directory and
 * the environment of the worker that a standby worker becomes. A part of the library that is not
 * seen outside. */
#ifndef MUSTER_CLIENT_STANDBY_PASSAGE_H
#define MUSTER_CLIENT_STANDBY_PASSAGE_H

#include <stddef.h>

/* The longest body. */
#define STANDBY_BODY_MAXIMUM ((size_t)1 << 26)
/* The letter of a message that says what to import, and is of no use here. */
#define STANDBY_LIST 'L'
/* The same once more, to a standby worker that is ready; it is to say so again. */
#define STANDBY_MORE 'T'
/* The letter and the flags in front of the body. */
#define STANDBY_GO_HEAD 5

#pragma GCC visibility push(hidden)

/* The order to go. Its descriptors are the file with the body if there is one, standard input,
 * output and error, the record, and a file for the stacks of Python if there is one. */
struct standby_go {
    int is_in_file; /* 1: the body is in the first descriptor; 0: behind the head */
    int has_evidence;
    size_t descriptor_count;
};

/* Returns 0, or EBADMSG and an untouched result. */
int muster_standby_go_read(const char *packet, size_t length, struct standby_go *out_go);

struct standby_passage {
    char *directory;    /* within the body; "": stay */
    char **environment; /* NAME=VALUE within the body, then NULL; freed by the caller */
};

/* Reads a body of `length` bytes: u32 length of the directory (least significant byte first), the
 * directory, and NAME=VALUE with a NUL byte behind each. The body is changed, and must live as long
 * as the result. What has no name is left out, and so is MUSTER_STANDBY. Returns 0, or an errno and
 * an untouched result: EBADMSG, E2BIG or ENOMEM. */
int muster_standby_passage_read(char *body, size_t length, struct standby_passage *out_passage);

#pragma GCC visibility pop

#endif
