/* SPDX-License-Identifier: BSD-3-Clause */
/* A bad network for real programs: a hub of Ethernet frames among network namespaces, whose cables
 * lose, delay, cut and reset. It needs root and /dev/net/tun, but nothing of the kernel's netem.
 *
 *     lossy_hub SEED
 *
 * It obeys lines of its standard input, answers each with `ok ...` or `error ...`, and ends with
 * its input. Ports are numbered from 1; FROM and TO may be `*` for all. What a cable does, it does
 * to the frames of one direction.
 *
 *     port NAMESPACE         a TAP device `eth0` in that network namespace: the next port
 *     loss FROM TO FRACTION  loses that part of the frames
 *     delay FROM TO MS       delivers later, in order
 *     cut FROM TO            loses all
 *     reset FROM TO          answers each segment of a TCP connection by a reset to its sender,
 *                            as a firewall does that has forgotten the connection
 *     mend FROM TO           none of all that
 *     count                  frames delivered, lost, reset */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define PORTS 64
#define LARGEST_FRAME 2048
#define MOST_DELAYED 65536 /* a cable that is slower than its senders loses, as a real one does */

struct cable {
    double loss;
    int64_t delay_ns;
    bool is_cut, resets;
};

struct delayed {
    struct delayed *next;
    int64_t due_ns;
    int to;
    size_t length;
    uint8_t frame[];
};

static struct port {
    int fd;
    uint8_t address[6]; /* who was last heard there */
} ports[PORTS];
static int port_count;
static struct cable cables[PORTS][PORTS];
static struct delayed *delayed_frames; /* by time */
static int delayed_count;
static uint64_t random_state;
static unsigned long delivered, lost, were_reset;

static int64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

/* In [0, 1): splitmix64 */
static double next_random(void) {
    uint64_t mixed = random_state += 0x9e3779b97f4a7c15U;
    mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9U;
    mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111ebU;
    return (double)((mixed ^ mixed >> 31) >> 11) / 9007199254740992.0;
}

static void deliver(int to, const uint8_t *frame, size_t length) {
    if (write(ports[to].fd, frame, length) == (ssize_t)length) {
        delivered++;
    } else {
        lost++; /* the device is down, or its queue is full */
    }
}

static void deliver_later(int to, const uint8_t *frame, size_t length, int64_t due_ns) {
    struct delayed *later = delayed_count < MOST_DELAYED ? malloc(sizeof *later + length) : NULL;
    if (later == NULL) {
        lost++;
        return;
    }
    struct delayed **place = &delayed_frames;
    while (*place != NULL && (*place)->due_ns <= due_ns) {
        place = &(*place)->next;
    }
    *later = (struct delayed){.next = *place, .due_ns = due_ns, .to = to, .length = length};
    memcpy(later->frame, frame, length);
    *place = later;
    delayed_count++;
}

/* Delivers what is due; returns how long to wait for the next, in ms, or -1. */
static int deliver_due(void) {
    const int64_t now = now_ns();
    while (delayed_frames != NULL && delayed_frames->due_ns <= now) {
        struct delayed *due = delayed_frames;
        delayed_frames = due->next;
        deliver(due->to, due->frame, due->length);
        free(due);
        delayed_count--;
    }
    return delayed_frames == NULL ? -1 : (int)((delayed_frames->due_ns - now + 999999) / 1000000);
}

static uint32_t sum_of(const uint8_t *bytes, size_t length, uint32_t sum) {
    for (size_t i = 0; i < length; i++) {
        sum += (uint32_t)bytes[i] << (i % 2 == 0 ? 8 : 0);
    }
    return sum;
}

static void put_16(uint8_t *place, uint32_t value) {
    place[0] = (uint8_t)(value >> 8);
    place[1] = (uint8_t)value;
}

static void put_checksum(uint8_t *place, uint32_t sum) {
    sum = (sum & 0xffff) + (sum >> 16);
    put_16(place, ~((sum & 0xffff) + (sum >> 16)));
}

/* Turns a frame with a segment of a connection (over IPv4) into the reset that answers it. False:
 * it is something else, or asks for a connection. */
static bool make_reset(const uint8_t *frame, size_t length, uint8_t reset[54]) {
    static const uint8_t ipv4_without_options[] = {0x08, 0x00, 0x45};
    if (length < 54 || memcmp(frame + 12, ipv4_without_options, 3) != 0 ||
        frame[23] != IPPROTO_TCP || (frame[47] & 0x16) != 0x10) { /* ACK, no SYN, no RST */
        return false;
    }
    memcpy(reset, frame + 6, 6); /* back to where it came from */
    memcpy(reset + 6, frame, 6);
    memcpy(reset + 12, frame + 12, 14);
    put_16(reset + 16, 40);
    put_16(reset + 24, 0);
    memcpy(reset + 26, frame + 30, 4);
    memcpy(reset + 30, frame + 26, 4);
    put_checksum(reset + 24, sum_of(reset + 14, 20, 0));
    memset(reset + 34, 0, 20);
    memcpy(reset + 34, frame + 36, 2); /* the ports */
    memcpy(reset + 36, frame + 34, 2);
    memcpy(reset + 38, frame + 42, 4); /* just the number that its sender awaits next */
    reset[46] = 0x50;
    reset[47] = 0x04; /* RST */
    put_checksum(reset + 50, sum_of(reset + 26, 28, IPPROTO_TCP + 20));
    return true;
}

static void carry(int from, int to, const uint8_t *frame, size_t length) {
    const struct cable *cable = &cables[from][to];
    uint8_t reset[54];
    if (cable->is_cut || (cable->loss > 0 && next_random() < cable->loss)) {
        lost++;
    } else if (cable->resets && make_reset(frame, length, reset)) {
        were_reset++;
        deliver(from, reset, sizeof reset);
    } else if (cable->delay_ns > 0) {
        deliver_later(to, frame, length, now_ns() + cable->delay_ns);
    } else {
        deliver(to, frame, length);
    }
}

/* To the port where the address was heard; to all when it is everybody's or nobody's. */
static void forward(int from, const uint8_t *frame, size_t length) {
    memcpy(ports[from].address, frame + 6, 6);
    for (int to = 0; to < port_count; to++) {
        if (to != from && memcmp(ports[to].address, frame, 6) == 0) {
            carry(from, to, frame, length);
            return;
        }
    }
    for (int to = 0; to < port_count; to++) {
        if (to != from) {
            carry(from, to, frame, length);
        }
    }
}

/* A device belongs to the namespace in which its file was opened. */
static const char *open_port(const char *name) {
    char path[256];
    struct ifreq request = {.ifr_name = "eth0", .ifr_flags = IFF_TAP | IFF_NO_PI};
    if (port_count == PORTS) {
        return "no port is left";
    }
    if ((size_t)snprintf(path, sizeof path, "/run/netns/%s", name) >= sizeof path) {
        return "the name of the namespace is too long";
    }
    const int there = open(path, O_RDONLY | O_CLOEXEC);
    if (there < 0 || setns(there, CLONE_NEWNET) != 0) {
        return "there is no such namespace";
    }
    close(there);
    const int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 || ioctl(fd, TUNSETIFF, &request) != 0) {
        return "no TAP device could be made";
    }
    ports[port_count++] = (struct port){.fd = fd};
    return NULL;
}

static void find_range(const char *word, int *first, int *last) {
    const int number = atoi(word);
    *first = strcmp(word, "*") == 0 ? 0 : number - 1;
    *last = strcmp(word, "*") == 0 ? PORTS - 1 : number - 1;
}

static const char *change_cable(struct cable *cable, const char *verb, double value) {
    if (strcmp(verb, "loss") == 0) {
        cable->loss = value;
    } else if (strcmp(verb, "delay") == 0) {
        cable->delay_ns = (int64_t)(value * 1e6);
    } else if (strcmp(verb, "cut") == 0) {
        cable->is_cut = true;
    } else if (strcmp(verb, "reset") == 0) {
        cable->resets = true;
    } else if (strcmp(verb, "mend") == 0) {
        *cable = (struct cable){0};
    } else {
        return "unknown command";
    }
    return NULL;
}

static const char *obey(const char *line) {
    char verb[16], from[256], to[16];
    double value = 0;
    int first_from, last_from, first_to, last_to;
    const int words = sscanf(line, "%15s %255s %15s %lf", verb, from, to, &value);
    if (words == 2 && strcmp(verb, "port") == 0) {
        return open_port(from);
    }
    if (words == 1 && strcmp(verb, "count") == 0) {
        return NULL;
    }
    const bool needs_value = strcmp(verb, "loss") == 0 || strcmp(verb, "delay") == 0;
    if (words != (needs_value ? 4 : 3)) {
        return "not so many words";
    }
    find_range(from, &first_from, &last_from);
    find_range(to, &first_to, &last_to);
    if (first_from < 0 || last_from >= PORTS || first_to < 0 || last_to >= PORTS) {
        return "no such port";
    }
    const char *obstacle = NULL;
    for (int i = first_from; i <= last_from && obstacle == NULL; i++) {
        for (int k = first_to; k <= last_to && obstacle == NULL; k++) {
            obstacle = change_cable(&cables[i][k], verb, value);
        }
    }
    return obstacle;
}

/* False: the input has ended. */
static bool read_commands(void) {
    static char text[4096];
    static size_t used;
    const ssize_t count = read(STDIN_FILENO, text + used, sizeof text - used - 1);
    if (count <= 0) {
        return false;
    }
    used += (size_t)count;
    text[used] = '\0';
    char *line = text;
    for (char *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
        *end = '\0';
        errno = 0;
        const char *obstacle = obey(line);
        if (obstacle == NULL) {
            printf("ok %d ports, %lu delivered, %lu lost, %lu reset\n", port_count, delivered, lost,
                were_reset);
        } else {
            printf("error %s%s%s\n", obstacle, errno ? ": " : "", errno ? strerror(errno) : "");
        }
    }
    used = strlen(line);
    memmove(text, line, used);
    fflush(stdout);
    return used < sizeof text - 1;
}

int main(int count, char **arguments) {
    struct pollfd polled[PORTS + 1];
    uint8_t frame[LARGEST_FRAME];
    random_state = count > 1 ? strtoull(arguments[1], NULL, 10) : 0;
    for (;;) {
        polled[0] = (struct pollfd){.fd = STDIN_FILENO, .events = POLLIN};
        for (int i = 0; i < port_count; i++) {
            polled[i + 1] = (struct pollfd){.fd = ports[i].fd, .events = POLLIN};
        }
        const int watched = port_count; /* commands add more */
        if (poll(polled, (nfds_t)watched + 1, deliver_due()) < 0 && errno != EINTR) {
            return 1;
        }
        for (int i = 0; i < watched; i++) {
            ssize_t length;
            if ((polled[i + 1].revents & POLLERR) != 0) { /* its namespace is gone */
                close(ports[i].fd);
                ports[i].fd = -1;
                continue;
            }
            while ((polled[i + 1].revents & POLLIN) != 0 &&
                   (length = read(ports[i].fd, frame, sizeof frame)) >= 14) {
                forward(i, frame, (size_t)length);
            }
        }
        if (polled[0].revents != 0 && !read_commands()) {
            return 0;
        }
    }
}
