/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "host/network/network_address.h"

#define UNKNOWN "no-such-name.invalid"

/* What a process does that asks getent. It is a process of its own, because that is for ever. */
static void in_another_process(void (*what)(void)) {
    int status;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        name_lookup_use_getent();
        what();
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void expect(bool is_true) {
    if (!is_true) {
        _exit(1);
    }
}

static bool has(const struct name_addresses *addresses, const char *text) {
    char one[INET6_ADDRSTRLEN];
    for (size_t i = 0; i < addresses->count; i++) {
        (void)tcp_address_write_numeric(&addresses->items[i], one);
        if (tcp_address_port(&addresses->items[i]) == 0 && text_equals(one, text)) {
            return true;
        }
    }
    return false;
}

static void look_at_names(void) {
    struct name_addresses found = {0};
    expect(name_lookup_addresses("localhost", AI_CANONNAME, &found) == 0);
    expect(has(&found, "127.0.0.1") || has(&found, "::1"));
    expect(found.canonical_name != NULL);
    name_addresses_clear(&found);
    expect(name_lookup_addresses(UNKNOWN, 0, &found) == EAI_NONAME);
    expect(text_equals(name_lookup_words(EAI_NONAME), "Name or service not known"));
    expect(name_lookup_addresses("--help", 0, &found) == EAI_NONAME);
}

TEST(names_are_found_by_libc_and_by_getent) {
    struct name_addresses found = {0};
    assert_int_equal(name_lookup_addresses("localhost", 0, &found), 0);
    assert_true(has(&found, "127.0.0.1") || has(&found, "::1"));
    name_addresses_clear(&found);
    assert_int_not_equal(name_lookup_addresses(UNKNOWN, 0, &found), 0);
    in_another_process(look_at_names);
}

static void look_at_digits(void) {
    struct name_addresses found = {0};
    setenv("PATH", "/nowhere", 1);
    expect(name_lookup_addresses("127.0.0.7", 0, &found) == 0);
    expect(found.count == 1 && has(&found, "127.0.0.7"));
    name_addresses_clear(&found);
    expect(name_lookup_addresses("localhost", AI_NUMERICHOST, &found) == EAI_NONAME);
}

/* There is no program to ask. */
TEST(digits_are_an_address_without_getent) {
    in_another_process(look_at_digits);
}

static void look_without_getent(void) {
    struct name_addresses found = {0};
    setenv("PATH", "/nowhere", 1);
    expect(name_lookup_addresses("localhost", 0, &found) == 0);
    name_addresses_clear(&found);
}

TEST(libc_is_asked_where_there_is_no_getent) {
    in_another_process(look_without_getent);
}

static void look_at_an_answer(void) {
    struct name_addresses found = {0};
    struct text_list names = {0};
    static const unsigned char address[] = {192, 0, 2, 4};
    expect(name_lookup_addresses("there", AI_CANONNAME, &found) == 0);
    expect(found.count == 2 && has(&found, "192.0.2.4") && has(&found, "2001:db8::4"));
    expect(text_equals(found.canonical_name, "there.example"));
    name_addresses_clear(&found);
    name_lookup_names(address, false, &names);
    expect(names.count == 2 && text_equals(names.items[0], "there.example"));
    expect(text_equals(names.items[1], "there"));
    text_list_clear(&names);
}

/* A getent of this test says what a name server would say. */
TEST(what_getent_says_is_read) {
    char directory[] = "/tmp/muster_lookup_XXXXXX";
    assert_non_null(mkdtemp(directory));
    char *program = text_format("%s/getent", directory);
    FILE *file = fopen(program, "w");
    assert_non_null(file);
    fputs("#!/bin/sh\n"
          "test \"$2\" = -- || exit 3\n"
          "if [ \"$1 $3\" = 'ahosts there' ]; then\n"
          "    echo '192.0.2.4       STREAM there.example'\n"
          "    echo '192.0.2.4       DGRAM  '\n"
          "    echo '2001:db8::4     STREAM '\n"
          "    echo 'nonsense        STREAM '\n"
          "elif [ \"$1 $3\" = 'hosts 192.0.2.4' ]; then\n"
          "    echo '192.0.2.4       there.example there'\n"
          "fi\n",
        file);
    fclose(file);
    assert_int_equal(chmod(program, 0755), 0);
    char *before = memory_duplicate_string(getenv("PATH"));
    setenv("PATH", directory, 1);
    in_another_process(look_at_an_answer);
    setenv("PATH", before, 1);
    unlink(program);
    rmdir(directory);
    free(before);
    free(program);
}

TEST(the_names_of_an_address_are_those_of_libc) {
    struct text_list names = {0};
    static const unsigned char unknown[] = {192, 0, 2, 99};
    static const unsigned char loopback[] = {127, 0, 0, 1};
    name_lookup_names(loopback, false, &names);
    /* A bare system has no /etc/hosts, and no name for it. */
    assert_true(names.count > 0 || access("/etc/hosts", R_OK) != 0);
    text_list_clear(&names);
    name_lookup_names(unknown, false, &names);
    assert_int_equal(names.count, 0);
}
