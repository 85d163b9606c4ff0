/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernel's tables are written in the machine's byte order; the addresses here are those of a
 * little-endian machine. */
#include "unit.h"

#include "wire/failure/kernel_text.h"

static void expect_address(const char *line, bool is_tcp, uint64_t inode, const char *words) {
    CLEARED_BY(text_clear) struct text out = {0};
    uint64_t read;
    assert_int_equal(
        socket_table_read_address(slice_from_string(line), is_tcp, &read, &out), FAILURE_NONE);
    assert_int_equal(read, inode);
    assert_string_equal(text_string(&out), words);
}

TEST(connections_are_told_with_their_peers) {
    expect_address("   1: 0100007F:7275 0200000A:1F90 01 0000000C:00000003 01:00000019 00000000  "
                   "1000        0 4711 2 0000000000000000 20 4 30 10 -1",
        true, 4711,
        "127.0.0.1:29301 -> 10.0.0.2:8080 ESTABLISHED, 12 bytes to send, 3 bytes to read");
    expect_address("   0: 00000000:1F90 00000000:0000 0A 00000000:00000002 00:00000000 00000000  "
                   "1000        0 12 1 0 100 0 0 10 0",
        true, 12, "0.0.0.0:8080 LISTEN, 2 waiting to be accepted");
}

TEST(addresses_of_the_sixth_version_are_read) {
    expect_address(
        "0: 00000000000000000000000001000000:0016 B80D0120000000000000000002000000:1F90 01 "
        "00000000:00000000 00:00000000 00000000 0 0 99 1",
        true, 99, "[0:0:0:0:0:0:0:1]:22 -> [2001:db8:0:0:0:0:0:2]:8080 ESTABLISHED");
    expect_address(
        "0: 0000000000000000FFFF00000100007F:0016 00000000000000000000000000000000:0000 07 "
        "00000000:00000000 00:00000000 00000000 0 0 98 1",
        false, 98, "127.0.0.1:22");
}

TEST(unix_sockets_are_told_with_their_path) {
    static const struct {
        const char *line;
        const char *words;
    } cases[] = {
        {"0000000000000000: 00000003 00000000 00000000 0001 03 4711", "unnamed CONNECTED"},
        {"0000000000000000: 00000002 00000000 00010000 0001 01 4711 /run/a b",
            "/run/a b LISTENING"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CLEARED_BY(text_clear) struct text out = {0};
        uint64_t inode;
        assert_int_equal(
            socket_table_read_unix(slice_from_string(cases[i].line), &inode, &out), FAILURE_NONE);
        assert_int_equal(inode, 4711);
        assert_string_equal(text_string(&out), cases[i].words);
    }
}

TEST(other_lines_are_refused) {
    static const char *const lines[] = {"",
        ("  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  "
         "timeout inode"),
        "1: 0100007F 0200000A:1F90 01 0:0 0:0 0 0 0 1",
        "1: 0100007F:1 0200000A:1F90 01 0:0 0:0 0 0 0 x", "1: 0100:1 02:1 01 0:0 0:0 0 0 0 1"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        struct text out = {0};
        uint64_t inode = 7;
        assert_int_equal(socket_table_read_address(slice_from_string(lines[i]), true, &inode, &out),
            FAILURE_MALFORMED);
        assert_int_equal(socket_table_read_unix(slice_from_string("Num RefCount"), &inode, &out),
            FAILURE_MALFORMED);
        assert_int_equal(inode, 7);
        assert_int_equal(out.length, 0);
    }
}

TEST(links_of_sockets_hold_an_inode) {
    uint64_t inode;
    assert_int_equal(socket_table_read_link("socket:[4711]", &inode), FAILURE_NONE);
    assert_int_equal(inode, 4711);
    static const char *const others[] = {"", "socket:[", "socket:[]", "socket:[1", "pipe:[1]"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        assert_int_equal(socket_table_read_link(others[i], &inode), FAILURE_MISSING);
    }
}
