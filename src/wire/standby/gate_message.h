/* SPDX-License-Identifier: BSD-3-Clause */
/* The messages of the gate, by which an agent and a standby worker speak. Each is one packet of a
 * local socket (SOCK_SEQPACKET): a letter and a body, numbers with the least significant byte
 * first.
 *
 *   from      letter  body                                        meaning
 *   spare     H       u32 version, u32 pid                        it has reached the hook
 *   spare     P       u32 modules, skipped, CPU ms, memory KiB    it is ready
 *   spare     A       the same                                    it has run the program, and waits
 *                                                               at its line
 *   spare     E       UTF-8 reason                                the program failed above its line
 *   spare     D       UTF-8 reason                                it cannot be used, and ends
 *   spare     X       UTF-8 name of a module                      nobody may import this early
 *   spare     U       UTF-8 reason                                so it is of no use, and ends
 *   spare     R       -                                           it goes through the gate
 *   agent     L       - (a file with the list)                    import this
 *   agent     T       - (a file with a list)                      import this, too, and say P again
 *   agent     F       - (a socket)                                a warm parent: fork a spare,
 *                                                               with this end of its gate
 *   agent     W       u32 pid                                     a warm parent: look which pages
 *                                                               this child of yours has needed, and
 *                                                               say P again. A spare that was
 *                                                               forked (0): make them your own
 *   agent     G       u32 flags, body, descriptors                go through the gate
 *
 * The body of G is u32 length of the working directory, the directory, and the whole environment as
 * NAME=VALUE, each with a NUL byte. A large body comes in a file, which is then the first
 * descriptor. The further descriptors are standard input, output and error, and the record. */
#ifndef MUSTER_WIRE_STANDBY_GATE_MESSAGE_H
#define MUSTER_WIRE_STANDBY_GATE_MESSAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/failure.h"
#include "base/text.h"
#include "core/standby/standby_preparation.h"

/* What a worker records for standby workers: a text that begins with the line "hello 1 PID" when
 * the hook was reached, and then has one line for each import, as core/standby/standby_preparation
 * has them. The worker appends to it at any time, and may write anything. */

/* In front of the text the file has a page that the agent and the worker share, for another purpose
 * (host/process/death_notice.h). */
#define STANDBY_RECORD_HEAD 4096
/* The most bytes of a record that are read. */
#define STANDBY_RECORD_MAXIMUM LEARNED_LIST_TEXT_MAXIMUM

/* Reads the first line, and sets `out_imports` to what follows it. FAILURE_INCOMPLETE when it is
 * not there yet, FAILURE_MALFORMED when it is another line, FAILURE_UNSUPPORTED for another
 * version. */
__attribute__((warn_unused_result)) enum failure_code standby_record_read_hello(
    struct slice record, int64_t *out_pid, struct slice *out_imports);

#define GATE_VERSION 1
/* The longest message of a standby worker. */
#define GATE_MESSAGE_MAXIMUM 1024
/* The longest body that is sent within a message. */
#define GATE_INLINE_MAXIMUM (32 * 1024)
/* In the flags of G: the body is in a file. */
#define GATE_BODY_IN_FILE 1U

enum gate_message_kind {
    GATE_MESSAGE_HELLO,
    GATE_MESSAGE_READY,
    GATE_MESSAGE_FAILED,
    GATE_MESSAGE_DIRTY,
    GATE_MESSAGE_LEFT_OUT,
    GATE_MESSAGE_UNSUITED,
    GATE_MESSAGE_THROUGH,
};

struct gate_message {
    enum gate_message_kind kind;
    union {
        struct {
            uint32_t version;
            uint32_t pid;
        } hello;
        struct {
            uint32_t modules; /* imported … */
            uint32_t skipped; /* … and not */
            uint32_t cpu_milliseconds;
            uint32_t memory_kib;
            bool is_at_line;
        } ready;
        /* Both point into the message, and may be any bytes. */
        struct slice reason; /* FAILED, DIRTY, UNSUITED */
        struct slice name;   /* LEFT_OUT */
    };
};

/* Reads what a standby worker has sent. FAILURE_MALFORMED for another letter or length,
 * FAILURE_UNSUPPORTED for a HELLO of another version. */
__attribute__((warn_unused_result)) enum failure_code gate_message_read(
    struct slice packet, struct gate_message *out_message);

/* Appends the body of G. */
void gate_message_write_body(
    const char *directory, const struct text_list *environment, struct bytes *out_bytes);
/* Appends W. */
void gate_message_write_pages(uint32_t pid, struct bytes *out_bytes);
/* Appends the letter and the flags of G, before which comes nothing and after which the body. */
void gate_message_write_go(uint32_t flags, struct bytes *out_bytes);

#endif
