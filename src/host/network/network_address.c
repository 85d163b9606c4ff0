/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/network/network_address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <limits.h>
#include <net/if.h>
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "host/loop/blocking_pool.h"

int tcp_address_port(const union tcp_address *address) {
    switch (address->any.sa_family) {
    case AF_INET:
        return ntohs(address->ipv4.sin_port);
    case AF_INET6:
        return ntohs(address->ipv6.sin6_port);
    default:
        return 0;
    }
}

void tcp_address_set_port(union tcp_address *address, int port) {
    if (address->any.sa_family == AF_INET6) {
        address->ipv6.sin6_port = htons((uint16_t)port);
    } else {
        address->ipv4.sin_port = htons((uint16_t)port);
    }
}

/* In the form of IPv6, so that families compare. */
static struct in6_addr host_of(const union tcp_address *address) {
    struct in6_addr host = IN6ADDR_ANY_INIT;
    if (address->any.sa_family == AF_INET6) {
        host = address->ipv6.sin6_addr;
    } else if (address->any.sa_family == AF_INET) {
        host.s6_addr[10] = 0xff;
        host.s6_addr[11] = 0xff;
        memcpy(&host.s6_addr[12], &address->ipv4.sin_addr, sizeof address->ipv4.sin_addr);
    }
    return host;
}

void tcp_address_host(
    const union tcp_address *address, uint8_t out_host[static TCP_ADDRESS_HOST_BYTES]) {
    struct in6_addr host = host_of(address);
    memcpy(out_host, &host, sizeof host);
}

static bool is_loopback_host(const struct in6_addr *host) {
    return IN6_IS_ADDR_LOOPBACK(host) ||
           (IN6_IS_ADDR_V4MAPPED(host) && host->s6_addr[12] == IN_LOOPBACKNET);
}

bool tcp_address_write_host(
    const uint8_t host[static TCP_ADDRESS_HOST_BYTES], char out_text[static INET6_ADDRSTRLEN]) {
    struct in6_addr address;
    memcpy(&address, host, sizeof address);
    if (IN6_IS_ADDR_UNSPECIFIED(&address) || is_loopback_host(&address)) {
        return false;
    }
    return IN6_IS_ADDR_V4MAPPED(&address)
               ? inet_ntop(AF_INET, &address.s6_addr[12], out_text, INET6_ADDRSTRLEN) != NULL
               : inet_ntop(AF_INET6, &address, out_text, INET6_ADDRSTRLEN) != NULL;
}

bool tcp_address_is_same_host(const union tcp_address *left, const union tcp_address *right) {
    struct in6_addr left_host = host_of(left);
    struct in6_addr right_host = host_of(right);
    return memcmp(&left_host, &right_host, sizeof left_host) == 0;
}

/* The same address; one of IPv4 in the form of IPv6 becomes one of IPv4. */
static union tcp_address tcp_address_plain(const union tcp_address *address) {
    union tcp_address plain = *address;
    if (address->any.sa_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&address->ipv6.sin6_addr)) {
        plain = (union tcp_address){
            .ipv4 = {.sin_family = AF_INET, .sin_port = address->ipv6.sin6_port}};
        memcpy(
            &plain.ipv4.sin_addr, &address->ipv6.sin6_addr.s6_addr[12], sizeof plain.ipv4.sin_addr);
    }
    return plain;
}

bool tcp_address_may_be_here(const union tcp_address *address) {
    union tcp_address place = tcp_address_plain(address);
    *(place.any.sa_family == AF_INET6 ? &place.ipv6.sin6_port : &place.ipv4.sin_port) = 0;
    int fd = socket(place.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return true;
    }
    bool is_refused =
        bind(fd, &place.any, sizeof place) != 0 && (errno == EADDRNOTAVAIL || errno == ENODEV);
    close(fd);
    return !is_refused;
}

bool tcp_address_is_this_machine(const union tcp_address *peer, const union tcp_address *own) {
    struct in6_addr host = host_of(peer);
    return is_loopback_host(&host) || tcp_address_is_same_host(peer, own);
}

bool tcp_address_write_numeric(
    const union tcp_address *address, char out_text[static INET6_ADDRSTRLEN]) {
    struct in6_addr host = host_of(address);
    bool is_ipv4 = IN6_IS_ADDR_V4MAPPED(&host);
    inet_ntop(is_ipv4 ? AF_INET : AF_INET6, is_ipv4 ? &host.s6_addr[12] : host.s6_addr, out_text,
        INET6_ADDRSTRLEN);
    return !IN6_IS_ADDR_LINKLOCAL(&host);
}

bool tcp_address_write_own(int fd, char out_text[static INET6_ADDRSTRLEN]) {
    union tcp_address own = {0};
    union tcp_address peer = {0};
    socklen_t own_length = sizeof own;
    socklen_t peer_length = sizeof peer;
    return fd != -1 && getsockname(fd, &own.any, &own_length) == 0 &&
           getpeername(fd, &peer.any, &peer_length) == 0 &&
           !tcp_address_is_this_machine(&peer, &own) && tcp_address_write_numeric(&own, out_text);
}

void tcp_address_describe(
    const union tcp_address *address, char out_text[static TCP_ADDRESS_TEXT_SIZE]) {
    char host[INET6_ADDRSTRLEN] = "?";
    if (address->any.sa_family == AF_INET || address->any.sa_family == AF_INET6) {
        (void)tcp_address_write_numeric(address, host);
    }
    bool has_colons = strchr(host, ':') != NULL;
    snprintf(out_text, TCP_ADDRESS_TEXT_SIZE, "%s%s%s:%d", has_colons ? "[" : "", host,
        has_colons ? "]" : "", tcp_address_port(address));
}

/* Name lookup. */

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

static void name_lookup_add(struct name_addresses *addresses, const struct addrinfo *one) {
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
        name_lookup_add(addresses, one);
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

/* Whether this system knows `localhost`: other programs, such as workers, can use the name then. */
static bool name_lookup_knows_localhost(void) {
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

/* Local address. */
#define FAR_IPV4 0xc0000201 /* 192.0.2.1 */
#define FAR_IPV6 ((struct in6_addr){.s6_addr = {0x20, 0x01, 0x0d, 0xb8, [15] = 1}})
#define ANY_PORT 9

void address_list_clear(struct address_list *list) {
    free(list->items);
    *list = (struct address_list){0};
}

/* False for families other than IP. */
static bool read_address(const struct sockaddr *address, struct network_address *out_item) {
    *out_item = (struct network_address){.is_ipv6 = address->sa_family == AF_INET6};
    if (address->sa_family == AF_INET) {
        struct sockaddr_in ipv4;
        memcpy(&ipv4, address, sizeof ipv4);
        memcpy(out_item->bytes, &ipv4.sin_addr, sizeof ipv4.sin_addr);
    } else if (address->sa_family == AF_INET6) {
        struct sockaddr_in6 ipv6;
        memcpy(&ipv6, address, sizeof ipv6);
        memcpy(out_item->bytes, &ipv6.sin6_addr, sizeof ipv6.sin6_addr);
    }
    return address->sa_family == AF_INET || address->sa_family == AF_INET6;
}

/* Adds the address; NULL and families other than IP are ignored. */
static void local_address_add(struct address_list *list, const struct sockaddr *address) {
    struct network_address item;
    if (address == NULL || list->count == ADDRESSES_CEILING || !read_address(address, &item)) {
        return;
    }
    list->items =
        memory_reserve(list->items, &list->capacity, list->count + 1, sizeof *list->items);
    list->items[list->count++] = item;
}

static struct address_list look_up(const char *name, int flags, char **out_canonical_name) {
    struct address_list list = {0};
    struct name_addresses found = {0};
    (void)!name_lookup_addresses(name, flags, &found);
    for (size_t i = 0; i < found.count; i++) {
        local_address_add(&list, &found.items[i].any);
    }
    if (out_canonical_name != NULL) {
        *out_canonical_name = found.canonical_name;
        found.canonical_name = NULL;
    }
    name_addresses_clear(&found);
    return list;
}

struct address_list address_list_of_name(const char *name, char **out_canonical_name) {
    return look_up(name, out_canonical_name != NULL ? AI_CANONNAME : 0, out_canonical_name);
}

/* An address as text; empty when the text is a name. The resolver is not asked. */
static struct address_list address_list_of_address(const char *text) {
    return look_up(text, AI_NUMERICHOST, NULL);
}

struct address_list address_list_of_interfaces(void) {
    struct address_list list = {0};
    struct ifaddrs *interfaces = NULL;
    if (getifaddrs(&interfaces) == 0) {
        for (const struct ifaddrs *one = interfaces; one != NULL; one = one->ifa_next) {
            if ((one->ifa_flags & IFF_UP) != 0) {
                local_address_add(&list, one->ifa_addr);
            }
        }
        freeifaddrs(interfaces);
    }
    return list;
}

bool address_list_is_of_interface(const union tcp_address *address) {
    union tcp_address plain = tcp_address_plain(address);
    struct network_address wanted;
    if (!read_address(&plain.any, &wanted) || !tcp_address_may_be_here(address)) {
        return false;
    }
    struct address_list own = address_list_of_interfaces();
    bool is_own = network_address_is_loopback(&wanted);
    for (size_t i = 0; i < own.count && !is_own; i++) {
        is_own = network_address_equals(&own.items[i], &wanted);
    }
    address_list_clear(&own);
    return is_own;
}

/* Finds this machine's address on the way to a network that is far from all (RFC 5737, RFC 3849).
 * The kernel looks the way up when the socket is connected; nothing is sent. */
static bool find_outgoing(
    const struct sockaddr *far, socklen_t length, struct network_address *out_address) {
    union tcp_address own = {0};
    socklen_t own_length = sizeof own;
    int fd = socket(far->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool is_found = fd != -1 && connect(fd, far, length) == 0 &&
                    getsockname(fd, &own.any, &own_length) == 0 &&
                    read_address(&own.any, out_address);
    if (fd != -1) {
        close(fd);
    }
    return is_found;
}

static void move_to_front(struct address_list *list, const struct network_address *address) {
    for (size_t i = 1; i < list->count; i++) {
        if (network_address_equals(&list->items[i], address)) {
            struct network_address moved = list->items[i];
            memmove(&list->items[1], &list->items[0], i * sizeof *list->items);
            list->items[0] = moved;
            return;
        }
    }
}

/* Puts those in front from which this machine's packets go to far networks: other machines reach
 * them more likely than those of a bridge for containers, or of a network for storage. */
static void address_list_put_outgoing_first(struct address_list *list) {
    const struct sockaddr_in ipv4 = {
        .sin_family = AF_INET, .sin_port = htons(ANY_PORT), .sin_addr = {htonl(FAR_IPV4)}};
    const struct sockaddr_in6 ipv6 = {
        .sin6_family = AF_INET6, .sin6_port = htons(ANY_PORT), .sin6_addr = FAR_IPV6};
    struct network_address outgoing;
    if (find_outgoing((const struct sockaddr *)&ipv6, sizeof ipv6, &outgoing)) {
        move_to_front(list, &outgoing);
    }
    if (find_outgoing((const struct sockaddr *)&ipv4, sizeof ipv4, &outgoing)) {
        move_to_front(list, &outgoing);
    }
}

/* Local address. */

/* The facts from which core/rendezvous/endpoint_match chooses. */
struct names_and_addresses {
    char *host_name;
    char *qualified_name;
    struct address_list name_addresses;
    struct address_list local_addresses;
};

enum failure_code local_address_host_name(char **out_name, struct failure *failure) {
    char name[HOST_NAME_MAX + 1];
    if (gethostname(name, sizeof name) != 0) {
        return failure_set_system(failure, errno, "cannot tell this machine's host name");
    }
    name[sizeof name - 1] = '\0';
    *out_name = memory_duplicate_string(name);
    return FAILURE_NONE;
}

/* Reverse lookup: the name that Python's rule chooses among the names of an address, or `host_name`
 * when there is none. The caller frees the result. */
static char *name_of_address(const char *host_name, const struct network_address *address) {
    struct text_list names = {0};
    name_lookup_names(address->bytes, address->is_ipv6, &names);
    bool is_found = names.count > 0;
    char *name = memory_duplicate_string(address_choice_qualified_name(host_name,
        is_found ? names.items[0] : NULL, is_found ? (const char *const *)names.items + 1 : NULL));
    text_list_clear(&names);
    return name;
}

/* Looks up the host name, then the name of the first address, as CPython's gethostbyaddr does. A
 * lookup that failed is not repeated, because each may take a name server's timeout. */
static void find_names(struct names_and_addresses *found) {
    found->name_addresses = address_list_of_name(found->host_name, NULL);
    if (found->name_addresses.count == 0) {
        found->qualified_name = memory_duplicate_string(found->host_name);
        return;
    }
    found->qualified_name = name_of_address(found->host_name, &found->name_addresses.items[0]);
    if (strcmp(found->qualified_name, found->host_name) != 0) {
        address_list_clear(&found->name_addresses);
        found->name_addresses = address_list_of_name(found->qualified_name, NULL);
    }
}

static void names_and_addresses_clear(struct names_and_addresses *found) {
    free(found->host_name);
    free(found->qualified_name);
    address_list_clear(&found->name_addresses);
    address_list_clear(&found->local_addresses);
}

enum failure_code local_address_qualified_name(char **out_name, struct failure *failure) {
    struct names_and_addresses found = {0};
    enum failure_code code = local_address_host_name(&found.host_name, failure);
    if (code == FAILURE_NONE) {
        struct address_list addresses = address_list_of_name(found.host_name, NULL);
        *out_name = addresses.count > 0 ? name_of_address(found.host_name, &addresses.items[0])
                                        : memory_duplicate_string(found.host_name);
        address_list_clear(&addresses);
    }
    names_and_addresses_clear(&found);
    return code;
}

static enum failure_code choose(
    void (*choice)(const struct address_candidates *candidates, struct text *text), char **out_name,
    struct text *addresses, struct failure *failure) {
    struct names_and_addresses found = {0};
    enum failure_code code = local_address_host_name(&found.host_name, failure);
    if (code == FAILURE_NONE) {
        find_names(&found);
        found.local_addresses = address_list_of_interfaces();
        const struct address_candidates candidates = {
            .host_name = found.host_name,
            .qualified_name = found.qualified_name,
            .name_addresses = found.name_addresses.items,
            .name_address_count = found.name_addresses.count,
            .local_addresses = found.local_addresses.items,
            .local_address_count = found.local_addresses.count,
            .lacks_localhost = !name_lookup_knows_localhost(),
        };
        struct text chosen = {0};
        choice(&candidates, &chosen);
        *out_name = text_take(&chosen);
        for (size_t i = 0; addresses != NULL && i < found.name_addresses.count; i++) {
            network_address_format(&found.name_addresses.items[i], addresses);
            text_append(addresses, " ");
        }
    }
    names_and_addresses_clear(&found);
    return code;
}

enum failure_code local_address_for_one_node(char **out_name, struct failure *failure) {
    return choose(address_choice_for_one_node, out_name, NULL, failure);
}

enum failure_code local_address_for_many_nodes(
    char **out_name, struct text *addresses, struct failure *failure) {
    return choose(address_choice_for_many_nodes, out_name, addresses, failure);
}

void local_address_write_interfaces(size_t most, struct text *out) {
    struct address_list interfaces = address_list_of_interfaces();
    address_list_put_outgoing_first(&interfaces);
    for (size_t i = 0; i < interfaces.count; i++) {
        const struct network_address *address = &interfaces.items[i];
        struct text one = {0};
        network_address_format(address, &one);
        if (!network_address_is_loopback(address) && !network_address_is_link_local(address) &&
            out->length + 1 + one.length <= most) {
            text_append_format(out, "%s%s", out->length > 0 ? " " : "", text_string(&one));
        }
        text_clear(&one);
    }
    address_list_clear(&interfaces);
}

bool local_address_is_beyond_loopback(const char *text) {
    struct address_list wanted = address_list_of_address(text);
    struct address_list local = address_list_of_interfaces();
    struct text usual = {0};
    bool is = false;
    if (wanted.count == 1) {
        network_address_format(&wanted.items[0], &usual);
    }
    for (size_t i = 0; i < local.count && text_equals(text_string(&usual), text) && !is; i++) {
        is = network_address_equals(&local.items[i], &wanted.items[0]) &&
             !network_address_is_loopback(&wanted.items[0]) &&
             !network_address_is_link_local(&wanted.items[0]);
    }
    text_clear(&usual);
    address_list_clear(&wanted);
    address_list_clear(&local);
    return is;
}

/* Endpoint owner. */

/* Shared by the loop and the thread that answers it; the last user frees it. */
struct question {
    char *host;        /* does not change … */
    bool is_of_others; /* … nor does this: which addresses are not this machine's */
    pthread_mutex_t mutex;
    struct event_wake *wake; /* NULL: the answer is not wanted any more */
    bool is_answered;
    bool is_own;
    struct text others;
};

struct endpoint_owner {
    struct endpoint_owner_settings settings;
    char *host;
    struct event_wake *wake;
    struct question *question; /* the question under way, or NULL */
};

/* Rules. */

bool endpoint_owner_is_plain(const char *host, const char *given_address) {
    char *own_name = NULL;
    struct address_list wanted = address_list_of_address(host);
    struct address_list local = address_list_of_interfaces();
    (void)!local_address_host_name(&own_name, NULL);
    const struct endpoint_facts facts = {
        .host = host,
        .host_addresses = wanted.items,
        .host_address_count = wanted.count,
        .given_address = given_address,
        .own_name = own_name != NULL ? own_name : "localhost",
        .local_addresses = local.items,
        .local_address_count = local.count,
    };
    bool is_own = endpoint_matches_machine(&facts);
    address_list_clear(&wanted);
    address_list_clear(&local);
    free(own_name);
    return is_own;
}

/* What the resolver and the kernel say of this machine, and of the endpoint's name if that was
 * looked up. */
struct findings {
    char *own_name;
    char *canonical_name;
    struct address_list own;
    struct address_list wanted;
    struct address_list local;
};

static void look_at_machine(struct findings *found) {
    found->local = address_list_of_interfaces();
    if (local_address_host_name(&found->own_name, NULL) == FAILURE_NONE) {
        found->own = address_list_of_name(found->own_name, &found->canonical_name);
    }
}

static struct endpoint_facts facts_of(const struct findings *found, const char *host) {
    return (struct endpoint_facts){
        .host = host,
        .host_addresses = found->wanted.items,
        .host_address_count = found->wanted.count,
        .own_name = found->own_name != NULL ? found->own_name : "localhost",
        .own_canonical_name = found->canonical_name,
        .name_addresses = found->own.items,
        .name_address_count = found->own.count,
        .local_addresses = found->local.items,
        .local_address_count = found->local.count,
    };
}

static void findings_clear(struct findings *found) {
    address_list_clear(&found->own);
    address_list_clear(&found->wanted);
    address_list_clear(&found->local);
    free(found->canonical_name);
    free(found->own_name);
}

/* Looks up this machine's own name first. That name is often in a file, and may be enough, while
 * the endpoint's name may need a slow name server. */
static bool resolver_says_own(const char *host) {
    struct findings found = {0};
    look_at_machine(&found);
    struct endpoint_facts facts = facts_of(&found, host);
    bool is_own = endpoint_matches_machine(&facts);
    if (!is_own) {
        found.wanted = address_list_of_name(host, NULL);
        facts = facts_of(&found, host);
        is_own = endpoint_matches_machine(&facts);
    }
    findings_clear(&found);
    return is_own;
}

/* Only the kernel is believed on which addresses are this machine's: its own name may have those of
 * other machines, too. A name that has none of them is translated on the way. */
static void resolver_lists_others(const char *host, struct text *out) {
    struct findings found = {
        .local = address_list_of_interfaces(), .wanted = address_list_of_name(host, NULL)};
    struct endpoint_facts facts = facts_of(&found, host);
    if (endpoint_list_others(&facts, out) == found.wanted.count) {
        text_clear(out);
    }
    findings_clear(&found);
}

/* Questions. */

static struct question *question_new(const char *host, bool is_of_others, struct event_wake *wake) {
    struct question *question = memory_allocate(sizeof *question);
    question->host = memory_duplicate_string(host);
    question->is_of_others = is_of_others;
    pthread_mutex_init(&question->mutex, NULL);
    question->wake = wake;
    return question;
}

static void question_free(struct question *question) {
    pthread_mutex_destroy(&question->mutex);
    text_clear(&question->others);
    free(question->host);
    free(question);
}

/* Runs on the thread. */
static void *work(void *context) {
    struct question *question = context;
    struct text others = {0};
    bool is_own = true;
    if (question->is_of_others) {
        resolver_lists_others(question->host, &others);
    } else {
        is_own = resolver_says_own(question->host);
    }
    pthread_mutex_lock(&question->mutex);
    bool is_forgotten = question->wake == NULL;
    question->is_answered = true;
    question->is_own = is_own;
    question->others = others;
    if (!is_forgotten) {
        event_wake_send(question->wake);
    }
    pthread_mutex_unlock(&question->mutex);
    if (is_forgotten) {
        question_free(question);
    }
    return NULL;
}

static bool is_answered(struct question *question) {
    pthread_mutex_lock(&question->mutex);
    bool is_answered = question->is_answered;
    pthread_mutex_unlock(&question->mutex);
    return is_answered;
}

static void forget(struct question *question) {
    pthread_mutex_lock(&question->mutex);
    bool is_answered = question->is_answered;
    question->wake = NULL;
    pthread_mutex_unlock(&question->mutex);
    if (is_answered) {
        question_free(question);
    }
}

/* Creation and end. */

static void woken(void *context) {
    struct endpoint_owner *owner = context;
    struct question *question = owner->question;
    if (question == NULL || !is_answered(question)) {
        return;
    }
    owner->question = NULL;
    if (question->is_of_others) {
        owner->settings.shared(owner->settings.context, text_string(&question->others));
    } else {
        owner->settings.answered(owner->settings.context, question->is_own);
    }
    question_free(question);
}

enum failure_code endpoint_owner_new(struct event_loop *loop,
    const struct endpoint_owner_settings *settings, struct endpoint_owner **out_owner,
    struct failure *failure) {
    struct endpoint_owner *owner = memory_allocate(sizeof *owner);
    enum failure_code code = event_wake_new(loop, woken, owner, &owner->wake, failure);
    if (code != FAILURE_NONE) {
        free(owner);
        return code;
    }
    owner->settings = *settings;
    owner->host = memory_duplicate_string(settings->host);
    *out_owner = owner;
    return FAILURE_NONE;
}

void endpoint_owner_free(struct endpoint_owner *owner) {
    if (owner == NULL) {
        return;
    }
    if (owner->question != NULL) {
        forget(owner->question);
    }
    event_wake_free(owner->wake);
    free(owner->host);
    free(owner);
}

static enum failure_code ask(
    struct endpoint_owner *owner, bool is_of_others, struct failure *failure) {
    pthread_t thread;
    if (owner->question != NULL) {
        return FAILURE_NONE;
    }
    struct question *question = question_new(owner->host, is_of_others, owner->wake);
    enum failure_code code = quiet_thread_start("muster-names", work, question, &thread, failure);
    if (code != FAILURE_NONE) {
        question_free(question);
        return code;
    }
    pthread_detach(thread);
    owner->question = question;
    return FAILURE_NONE;
}

enum failure_code endpoint_owner_ask(struct endpoint_owner *owner, struct failure *failure) {
    return ask(owner, false, failure);
}

enum failure_code endpoint_owner_ask_for_others(
    struct endpoint_owner *owner, struct failure *failure) {
    return ask(owner, true, failure);
}
