/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the kernel's tables of sockets: /proc/<pid>/net/{tcp,tcp6,udp,udp6,unix}, line by line. */
#ifndef MUSTER_WIRE_FAILURE_SOCKET_TABLE_H
#define MUSTER_WIRE_FAILURE_SOCKET_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/failure.h"
#include "base/text.h"

/* Reads one line of an address table (tcp, tcp6, udp, udp6): its inode, and a description like
 * "127.0.0.1:80 -> 10.0.0.7:4711 ESTABLISHED, 12 bytes to send, 3 to read", which is appended to
 * `out_words`. FAILURE_MALFORMED for other lines, such as the table's heading; nothing is appended
 * then. */
__attribute__((warn_unused_result)) enum failure_code socket_table_read_address(
    struct slice line, bool is_tcp, uint64_t *out_inode, struct text *out_words);

/* Reads one line of the table of Unix sockets. The description looks like "/run/socket CONNECTED"
 * or "unnamed LISTENING". */
__attribute__((warn_unused_result)) enum failure_code socket_table_read_unix(
    struct slice line, uint64_t *out_inode, struct text *out_words);

/* Reads the inode from the target of a descriptor's link in /proc. FAILURE_MISSING when the
 * descriptor is no socket. */
__attribute__((warn_unused_result)) enum failure_code socket_table_read_link(
    const char *link, uint64_t *out_inode);

/* Takes one line off the front of the text and returns it without its newline; false at the end. */
bool socket_table_next_line(struct slice *text, struct slice *out_line);

#endif
