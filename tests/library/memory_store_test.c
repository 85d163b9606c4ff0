/* SPDX-License-Identifier: BSD-3-Clause */
/* A store's server of very many keys and clients in a process that has no memory left: where one of
 * its lists would have to grow, it goes on or turns away who asks. The limit is the kernel's. */
#include "unit.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <muster/store.h>
#include <muster/store_server.h>

#include "library/memory_fixture.h"

/* Clients without a library, which need no memory. */

/* VALIDATE with its number, then WAIT for, or SET, the key "gate"; as PyTorch's TCPStore says it.
 */
#define GREETING "\0\xce\xf7\x85\x3c"
#define KEY "\4\0\0\0\0\0\0\0gate"
static const char wait_request[] = GREETING "\6\1\0\0\0\0\0\0\0" KEY;
static const char set_request[] = GREETING "\1" KEY "\1\0\0\0\0\0\0\0v";

static int connect_to(int port) {
    struct sockaddr_in address = {.sin_family = AF_INET};
    address.sin_port = htons((uint16_t)port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    struct sockaddr_in own = {.sin_family = AF_INET};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int is_late = 1;
    assert_true(fd >= 0);
    /* One address has not enough ports. */
    own.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1 + (in_addr_t)fd % 64);
    (void)setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &is_late, sizeof is_late);
    assert_int_equal(bind(fd, (struct sockaddr *)&own, sizeof own), 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

static int port_of(const struct loop *loop) {
    return muster_store_server_port(loop->server);
}

static void serve(const struct loop *loop, int turns) {
    for (int i = 0; i < turns; i++) {
        (void)muster_store_server_process(loop->server, NULL);
    }
}

static void say(int fd, const char *request, size_t size) {
    assert_int_equal(send(fd, request, size - 1, MSG_NOSIGNAL), (ssize_t)size - 1);
}

/* 1: a byte has come; 0: the server has closed the connection; -1: neither yet. */
static int hear(int fd) {
    char byte;
    return (int)recv(fd, &byte, 1, MSG_DONTWAIT);
}

static size_t descriptor_limit(void) {
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = limit.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    return limit.rlim_cur;
}

/* Keys. */

#define BATCH 250
#define HOLE 512

/* Blocks that are freed one by one leave room for small things, and none for a large one. */
static char *holes[120000];

static void make_holes(void) {
    for (size_t i = 0; i < sizeof holes / sizeof *holes; i++) {
        holes[i] = malloc(HOLE);
        assert_non_null(holes[i]);
    }
}

static void free_holes(size_t first) {
    for (size_t i = first; i < sizeof holes / sizeof *holes; i += 2) {
        free(holes[i]);
    }
}

static void take_count(void *context, const struct muster_store_result *result) {
    assert_int_equal(result->error, MUSTER_OK);
    *(int64_t *)context = result->number;
}

static int64_t key_count(struct loop *loop) {
    struct muster_store_request request = MUSTER_STORE_REQUEST;
    int64_t count = -1;
    request.operation = MUSTER_STORE_NUM_KEYS;
    assert_int_equal(
        muster_store_submit(loop->stores[1], &request, take_count, &count, NULL), MUSTER_OK);
    while (count < 0) {
        (void)muster_store_server_process(loop->server, NULL);
        (void)muster_store_process(loop->stores[1], NULL);
    }
    return count;
}

TEST(keys_are_taken_where_their_list_cannot_grow) {
    struct loop loop;
    SKIP_WHERE_MEMORY_IS_ANOTHERS;
    open_loop(&loop);
    fill(&loop, 0, 80000); /* the list is doubled at about 120,000 */
    make_holes();
    exhaust(1024 << 10);
    free_holes(0);
    for (int first = 80000; first < 160000; first += BATCH) {
        fill(&loop, first, BATCH);
    }
    relieve();
    free_holes(1);
    assert_int_equal(key_count(&loop), 160000);
    fill(&loop, 160000, 60000);
    assert_int_equal(key_count(&loop), 220000);
    close_loop(&loop);
}

static void try_to_set(struct loop *loop, int first, int count) {
    struct muster_store_request set = MUSTER_STORE_REQUEST;
    char name[12];
    set.operation = MUSTER_STORE_SET;
    set.key = name;
    for (int i = 0; i < count; i++) {
        snprintf(name, sizeof name, "%d", first + i);
        ask_and_wait(loop, 0, &set);
    }
}

static void open_again(struct loop *loop) {
    struct muster_tcp_store_settings client = MUSTER_TCP_STORE_SETTINGS;
    const struct muster_store_request ping = MUSTER_STORE_REQUEST;
    client.host = "127.0.0.1";
    client.port = muster_store_server_port(loop->server);
    muster_store_free(loop->stores[0]);
    assert_int_equal(muster_store_new_tcp(&client, &loop->stores[0], NULL), MUSTER_OK);
    ask_and_wait(loop, 0, &ping);
    assert_int_equal(loop->error, MUSTER_OK);
}

TEST(server_of_very_many_keys_lives_on_what_there_is) {
    struct loop loop;
    int next = 300000;
    SKIP_WHERE_MEMORY_IS_ANOTHERS;
    open_loop(&loop);
    for (int first = 0; first < 300000; first += 100000) {
        fill(&loop, first, 100000);
    }
    for (size_t i = 0; i < STEPS; i++) {
        int64_t before = key_count(&loop);
        exhaust(steps[i] << 10);
        try_to_set(&loop, next, 300);
        relieve();
        next += 300;
        assert_true(key_count(&loop) >= before);
        open_again(&loop);
    }
    try_to_set(&loop, next, 1);
    assert_int_equal(loop.error, MUSTER_OK);
    close_loop(&loop);
}

/* Clients. */

#define WAITING 17000

/* In a process of its own, whose descriptors they are: tells when they have asked, and then waits
 * for all answers. */
static _Noreturn void be_waiting(int port, size_t count, int told) {
    int *fds = calloc(count, sizeof *fds);
    const struct timeval patience = {.tv_sec = 60};
    char byte = 0;
    for (size_t i = 0; fds != NULL && i < count; i++) {
        fds[i] = connect_to(port);
        say(fds[i], wait_request, sizeof wait_request);
    }
    bool is_well = fds != NULL && write(told, &byte, 1) == 1;
    for (size_t i = 0; is_well && i < count; i++) {
        is_well = setsockopt(fds[i], SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) == 0 &&
                  recv(fds[i], &byte, 1, 0) == 1;
    }
    _exit(is_well ? 0 : 1);
}

static pid_t start_waiting(const struct loop *loop) {
    size_t most = descriptor_limit() - 100;
    size_t count = most < WAITING ? most : WAITING;
    int port = port_of(loop); /* of the process that has made it */
    int told[2];
    assert_int_equal(pipe(told), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        be_waiting(port, count, told[1]);
    }
    struct pollfd place = {.fd = told[0], .events = POLLIN};
    while (poll(&place, 1, 0) == 0) {
        serve(loop, 1);
    }
    serve(loop, 1000);
    close(told[0]);
    close(told[1]);
    return child;
}

static void assert_ends_well(pid_t child, const struct loop *loop) {
    int status;
    pid_t ended;
    while ((ended = waitpid(child, &status, WNOHANG)) == 0) {
        serve(loop, 1);
    }
    assert_int_equal(ended, child);
    assert_int_equal(status, 0);
}

TEST(all_who_wait_are_answered_or_none) {
    static const size_t left[] = {256, 512, 1024, 65536};
    struct loop loop;
    bool is_set = false;
    SKIP_WHERE_MEMORY_IS_ANOTHERS;
    open_loop(&loop);
    pid_t others = start_waiting(&loop);
    int waiting = connect_to(port_of(&loop));
    say(waiting, wait_request, sizeof wait_request);
    for (size_t i = 0; i < sizeof left / sizeof *left && !is_set; i++) {
        int fd = connect_to(port_of(&loop));
        serve(&loop, 10);
        exhaust(left[i] << 10);
        say(fd, set_request, sizeof set_request);
        serve(&loop, 10);
        relieve();
        is_set = hear(waiting) == 1;
        assert_int_equal(hear(fd), is_set ? -1 : 0); /* the server has refused it, and let go */
        close(fd);
    }
    assert_true(is_set);
    assert_ends_well(others, &loop);
    close(waiting);
    serve(&loop, 1000);
    close_loop(&loop);
}

#define HIGH 16400

/* libuv's list of descriptors doubles there. */
TEST(client_of_a_high_descriptor_is_turned_away) {
    struct loop loop;
    SKIP_WHERE_MEMORY_IS_ANOTHERS;
    if (descriptor_limit() <= HIGH + 100) {
        SKIP_BECAUSE("the limit of open files is low");
    }
    open_loop(&loop);
    int *fds = calloc(HIGH, sizeof *fds);
    assert_non_null(fds);
    for (int i = 0; i < HIGH; i++) {
        fds[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
    }
    int turned_away = connect_to(port_of(&loop));
    exhaust(256 << 10);
    serve(&loop, 10);
    relieve();
    assert_int_equal(hear(turned_away), 0);
    int welcome = connect_to(port_of(&loop));
    say(welcome, wait_request, sizeof wait_request);
    serve(&loop, 10);
    assert_int_equal(hear(welcome), -1);
    assert_int_equal(errno, EAGAIN);
    for (int i = 0; i < HIGH; i++) {
        close(fds[i]);
    }
    free(fds);
    close(turned_away);
    close(welcome);
    close_loop(&loop);
}

static int begin(void **state) {
    (void)state;
    leave_memory_alone();
    return 0;
}

TESTS_WITHIN(begin, NULL)
