/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/network/name_lookup.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"

/* The maximum number of addresses of one name. */
#define ADDRESSES_CEILING 1024
#define ANSWER_CEILING ((size_t)1 << 20)
#define PIECE_SIZE 4096
#define LOOKUP_BUFFER_FIRST ((size_t)1024)
#define LOOKUP_BUFFER_CEILING ((size_t)65536)
#define BLANKS " \t"
#define LOCALHOST "localhost"

static bool uses_getent;

void name_lookup_use_getent(void) {
    uses_getent = true;
}

void name_addresses_clear(struct name_addresses *addresses) {
    free(addresses->items);
    free(addresses->canonical_name);
    *addresses = (struct name_addresses){0};
}

/* By libc. */

static void add(struct name_addresses *addresses, const struct addrinfo *one) {
    union tcp_address address = {0};
    if (one->ai_addrlen > sizeof address || addresses->count == ADDRESSES_CEILING) {
        return;
    }
    memcpy(&address, one->ai_addr, one->ai_addrlen);
    addresses->items = memory_reserve(
        addresses->items, &addresses->capacity, addresses->count + 1, sizeof *addresses->items);
    addresses->items[addresses->count++] = address;
}

static int ask_libc(const char *name, int flags, struct name_addresses *addresses) {
    const struct addrinfo hints = {
        .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = flags};
    struct addrinfo *found = NULL;
    int status = getaddrinfo(name, NULL, &hints, &found);
    if (status != 0) {
        return status;
    }
    if ((flags & AI_CANONNAME) != 0 && found->ai_canonname != NULL) {
        addresses->canonical_name = memory_duplicate_string(found->ai_canonname);
    }
    for (const struct addrinfo *one = found; one != NULL; one = one->ai_next) {
        add(addresses, one);
    }
    freeaddrinfo(found);
    return 0;
}

static void ask_libc_for_names(
    const unsigned char *address, bool is_ipv6, struct text_list *out_names) {
    char *buffer = NULL;
    int error = ERANGE;
    struct hostent entry;
    struct hostent *found = NULL;
    for (size_t size = LOOKUP_BUFFER_FIRST; error == ERANGE && size <= LOOKUP_BUFFER_CEILING;
         size *= 2) {
        int lookup_error;
        buffer = memory_reallocate(buffer, size);
        error = gethostbyaddr_r(address, is_ipv6 ? 16 : 4, is_ipv6 ? AF_INET6 : AF_INET, &entry,
            buffer, size, &found, &lookup_error);
    }
    if (error == 0 && found != NULL) {
        text_list_add(out_names, found->h_name);
        for (char **alias = found->h_aliases; *alias != NULL; alias++) {
            text_list_add(out_names, *alias);
        }
    }
    free(buffer);
}

/* By getent. */

static bool start(const char *const words[], int out_fd, pid_t *out_pid) {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t signals;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDWR, 0);
    posix_spawn_file_actions_adddup2(&actions, out_fd, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, STDIN_FILENO, STDERR_FILENO);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
    sigemptyset(&signals);
    posix_spawnattr_setsigmask(&attributes, &signals);
    sigfillset(&signals);
    posix_spawnattr_setsigdefault(&attributes, &signals);
    char *arguments[8] = {NULL};
    for (size_t i = 0; words[i] != NULL; i++) {
        arguments[i] = memory_duplicate_string(words[i]);
    }
    int error = posix_spawnp(out_pid, arguments[0], &actions, &attributes, arguments, environ);
    for (size_t i = 0; words[i] != NULL; i++) {
        free(arguments[i]);
    }
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return error == 0;
}

static void read_all(int fd, struct text *out) {
    char piece[PIECE_SIZE];
    ssize_t length;
    while (((length = read(fd, piece, sizeof piece)) > 0 && out->length < ANSWER_CEILING) ||
           (length < 0 && errno == EINTR)) {
        text_append_bytes(out, piece, length > 0 ? (size_t)length : 0);
    }
}

/* False where it cannot be asked. The agent may reap the process first, so its status is not looked
 * at: what is not known has no answer. */
static bool ask_getent(const char *database, const char *key, struct text *out_answer) {
    const char *const words[] = {"getent", database, "--", key, NULL};
    int ends[2];
    pid_t pid = 0;
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return false;
    }
    bool has_started = start(words, ends[1], &pid);
    close(ends[1]);
    if (has_started) {
        read_all(ends[0], out_answer);
    }
    close(ends[0]);
    while (has_started && waitpid(pid, NULL, 0) < 0 && errno == EINTR) {
    }
    return has_started;
}

/* "ADDRESS STREAM NAME", and the same for two other kinds of sockets. Only the first line has a
 * name. */
static void take_address(char *line, bool wants_name, struct name_addresses *addresses) {
    char *rest = NULL;
    const char *address = strtok_r(line, BLANKS, &rest);
    const char *kind = strtok_r(NULL, BLANKS, &rest);
    const char *name = strtok_r(NULL, BLANKS, &rest);
    if (kind == NULL || !text_equals(kind, "STREAM") ||
        ask_libc(address, AI_NUMERICHOST, addresses) != 0) {
        return;
    }
    if (wants_name && name != NULL && addresses->canonical_name == NULL) {
        addresses->canonical_name = memory_duplicate_string(name);
    }
}

static int take_addresses(char *answer, bool wants_name, struct name_addresses *addresses) {
    char *rest = NULL;
    for (char *line = strtok_r(answer, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        take_address(line, wants_name, addresses);
    }
    return addresses->count > 0 ? 0 : EAI_NONAME;
}

/* "ADDRESS NAME ALIAS…" */
static void take_names(char *answer, struct text_list *out_names) {
    char *rest = NULL;
    answer[strcspn(answer, "\n")] = '\0';
    (void)strtok_r(answer, BLANKS, &rest);
    for (const char *name = strtok_r(NULL, BLANKS, &rest); name != NULL;
         name = strtok_r(NULL, BLANKS, &rest)) {
        text_list_add(out_names, name);
    }
}

/* By the one or the other. */

static int ask_system(const char *name, int flags, struct name_addresses *out_addresses) {
    struct name_addresses addresses = {0};
    struct text answer = {0};
    /* Digits take no lock. */
    int status = ask_libc(name, uses_getent ? flags | AI_NUMERICHOST : flags, &addresses);
    bool is_left_to_getent = uses_getent && (flags & AI_NUMERICHOST) == 0 && status == EAI_NONAME;
    if (is_left_to_getent && ask_getent("ahosts", name, &answer)) {
        char *lines = text_take(&answer);
        status = take_addresses(lines, (flags & AI_CANONNAME) != 0, &addresses);
        free(lines);
    } else if (is_left_to_getent) {
        status = ask_libc(name, flags, &addresses);
    }
    if (status == 0) {
        *out_addresses = addresses;
    }
    return status;
}

static bool is_localhost(const char *name) {
    return strcasecmp(name, LOCALHOST) == 0 || strcasecmp(name, LOCALHOST ".") == 0;
}

static int take_loopback(bool wants_name, struct name_addresses *out_addresses) {
    int status = ask_libc("127.0.0.1", AI_NUMERICHOST, out_addresses);
    (void)ask_libc("::1", AI_NUMERICHOST, out_addresses);
    if (status == 0 && wants_name) {
        out_addresses->canonical_name = memory_duplicate_string(LOCALHOST);
    }
    return status;
}

int name_lookup_addresses(const char *name, int flags, struct name_addresses *out_addresses) {
    int status = ask_system(name, flags, out_addresses);
    if (status != 0 && (flags & AI_NUMERICHOST) == 0 && is_localhost(name)) {
        *out_addresses = (struct name_addresses){0};
        return take_loopback((flags & AI_CANONNAME) != 0, out_addresses);
    }
    return status;
}

bool name_lookup_knows_localhost(void) {
    struct name_addresses addresses = {0};
    bool is_known = ask_system(LOCALHOST, 0, &addresses) == 0;
    name_addresses_clear(&addresses);
    return is_known;
}

const char *name_lookup_words(int status) {
    if (uses_getent) { /* translations have a lock, too */
        return status == EAI_NONAME ? "Name or service not known" : "it cannot be looked up";
    }
    return gai_strerror(status);
}

void name_lookup_names(const unsigned char *address, bool is_ipv6, struct text_list *out_names) {
    char key[INET6_ADDRSTRLEN] = "";
    struct text answer = {0};
    (void)inet_ntop(is_ipv6 ? AF_INET6 : AF_INET, address, key, sizeof key);
    if (uses_getent && ask_getent("hosts", key, &answer)) {
        char *line = text_take(&answer);
        take_names(line, out_names);
        free(line);
    } else {
        ask_libc_for_names(address, is_ipv6, out_names);
    }
}

enum failure_code name_lookup_resolve(const char *host, int port, union tcp_address *out_addresses,
    size_t most, size_t *out_count, struct failure *failure) {
    struct name_addresses found = {0};
    int status = name_lookup_addresses(host, 0, &found);
    if (status == EAI_SYSTEM) {
        return failure_set_system(failure, errno, "host \"%s\" cannot be looked up", host);
    }
    if (status != 0) {
        return failure_set(failure, FAILURE_SYSTEM, "host \"%s\" is not known: %s", host,
            name_lookup_words(status));
    }
    size_t count = found.count < most ? found.count : most;
    for (size_t i = 0; i < count; i++) {
        out_addresses[i] = found.items[i];
        tcp_address_set_port(&out_addresses[i], port);
    }
    name_addresses_clear(&found);
    *out_count = count;
    return FAILURE_NONE;
}
