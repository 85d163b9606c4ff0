/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the kernel's tables of sockets: /proc/<pid>/net/{tcp,tcp6,udp,udp6,unix}, line by line. */
#ifndef MUSTER_WIRE_SOCKET_TABLE_H
#define MUSTER_WIRE_SOCKET_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/failure.h"
#include "base/text.h"

/* One line of an address table (tcp, tcp6, udp, udp6): its inode, and in words, appended to
 * `out_words`, "127.0.0.1:80 -> 10.0.0.7:4711 ESTABLISHED, 12 bytes to send, 3 to read". Nothing is
 * appended on failure. FAILURE_MALFORMED for other lines, as the table's heading. */
__attribute__((warn_unused_result)) enum failure_code socket_table_read_address(
    struct slice line, bool is_tcp, uint64_t *out_inode, struct text *out_words);

/* One line of the table of Unix sockets: "/run/socket CONNECTED", "unnamed LISTENING". */
__attribute__((warn_unused_result)) enum failure_code socket_table_read_unix(
    struct slice line, uint64_t *out_inode, struct text *out_words);

/* The inode of a descriptor's link; FAILURE_MISSING when it is no socket. */
__attribute__((warn_unused_result)) enum failure_code socket_table_read_link(
    const char *link, uint64_t *out_inode);

/* Takes a line, without its end, off the front of the text; false when nothing is left. */
bool socket_table_next_line(struct slice *text, struct slice *out_line);

#endif
