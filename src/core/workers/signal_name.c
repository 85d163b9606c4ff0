/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/workers/signal_name.h"

#include <stddef.h>
#include <string.h>

#define SIGNAL_NUMBER_INTERRUPT 2

#define SIGNAL_NUMBER_QUIT 3

static const char *const names[SIGNAL_NUMBER_REAL_TIME_LAST + 1] = {
    [1] = "SIGHUP",
    [2] = "SIGINT",
    [3] = "SIGQUIT",
    [4] = "SIGILL",
    [5] = "SIGTRAP",
    [6] = "SIGABRT",
    [7] = "SIGBUS",
    [8] = "SIGFPE",
    [SIGNAL_NUMBER_KILL] = "SIGKILL",
    [10] = "SIGUSR1",
    [11] = "SIGSEGV",
    [12] = "SIGUSR2",
    [13] = "SIGPIPE",
    [14] = "SIGALRM",
    [15] = "SIGTERM",
    [16] = "SIGSTKFLT",
    [SIGNAL_NUMBER_CHILD] = "SIGCHLD",
    [18] = "SIGCONT",
    [SIGNAL_NUMBER_STOP] = "SIGSTOP",
    [20] = "SIGTSTP",
    [21] = "SIGTTIN",
    [22] = "SIGTTOU",
    [23] = "SIGURG",
    [24] = "SIGXCPU",
    [25] = "SIGXFSZ",
    [26] = "SIGVTALRM",
    [27] = "SIGPROF",
    [28] = "SIGWINCH",
    [29] = "SIGIO",
    [30] = "SIGPWR",
    [31] = "SIGSYS",
    [34] = "SIGRTMIN",
    [35] = "SIGRTMIN+1",
    [36] = "SIGRTMIN+2",
    [37] = "SIGRTMIN+3",
    [38] = "SIGRTMIN+4",
    [39] = "SIGRTMIN+5",
    [40] = "SIGRTMIN+6",
    [41] = "SIGRTMIN+7",
    [42] = "SIGRTMIN+8",
    [43] = "SIGRTMIN+9",
    [44] = "SIGRTMIN+10",
    [45] = "SIGRTMIN+11",
    [46] = "SIGRTMIN+12",
    [47] = "SIGRTMIN+13",
    [48] = "SIGRTMIN+14",
    [49] = "SIGRTMIN+15",
    [50] = "SIGRTMAX-14",
    [51] = "SIGRTMAX-13",
    [52] = "SIGRTMAX-12",
    [53] = "SIGRTMAX-11",
    [54] = "SIGRTMAX-10",
    [55] = "SIGRTMAX-9",
    [56] = "SIGRTMAX-8",
    [57] = "SIGRTMAX-7",
    [58] = "SIGRTMAX-6",
    [59] = "SIGRTMAX-5",
    [60] = "SIGRTMAX-4",
    [61] = "SIGRTMAX-3",
    [62] = "SIGRTMAX-2",
    [63] = "SIGRTMAX-1",
    [64] = "SIGRTMAX",
};

static const struct {
    const char *name;
    int number;
} aliases[] = {{"SIGIOT", 6}, {"SIGCLD", SIGNAL_NUMBER_CHILD}, {"SIGPOLL", 29}};

const char *signal_name_from_number(int number) {
    return number < 1 || number > SIGNAL_NUMBER_REAL_TIME_LAST ? NULL : names[number];
}

/* Reads one or two digits. The number is at most 30, the distance between the first and the last
 * real-time signal. -1 for other text. */
static int parse_distance(const char *digits) {
    size_t length = strspn(digits, "0123456789");
    if (length < 1 || length > 2 || digits[length] != '\0') {
        return -1;
    }
    int distance = digits[0] - '0';
    if (length == 2) {
        distance = distance * 10 + (digits[1] - '0');
    }
    return distance <= SIGNAL_NUMBER_REAL_TIME_LAST - SIGNAL_NUMBER_REAL_TIME_FIRST ? distance : -1;
}

static int real_time_number(const char *name) {
    static const char from_first[] = "SIGRTMIN+";
    static const char from_last[] = "SIGRTMAX-";
    size_t length = sizeof from_first - 1;
    if (strncmp(name, from_first, length) == 0) {
        int distance = parse_distance(name + length);
        return distance < 0 ? 0 : SIGNAL_NUMBER_REAL_TIME_FIRST + distance;
    }
    if (strncmp(name, from_last, length) == 0) {
        int distance = parse_distance(name + length);
        return distance < 0 ? 0 : SIGNAL_NUMBER_REAL_TIME_LAST - distance;
    }
    return 0;
}

int signal_number_from_name(const char *name) {
    for (int number = 1; number <= SIGNAL_NUMBER_REAL_TIME_LAST; number++) {
        if (names[number] != NULL && strcmp(names[number], name) == 0) {
            return number;
        }
    }
    for (size_t i = 0; i < sizeof aliases / sizeof *aliases; i++) {
        if (strcmp(aliases[i].name, name) == 0) {
            return aliases[i].number;
        }
    }
    return real_time_number(name);
}

bool signal_may_be_handled(int number) {
    return signal_name_from_number(number) != NULL && number != SIGNAL_NUMBER_KILL &&
           number != SIGNAL_NUMBER_STOP && number != SIGNAL_NUMBER_CHILD;
}

/* Signal repetition. */

/* Nobody presses twice within this time; a program that passes a signal on needs far less. */
#define SIGNAL_REPETITION_SAME_MILLISECONDS 300

bool signal_repetition_is_from_keyboard(int signal) {
    return signal == SIGNAL_NUMBER_INTERRUPT || signal == SIGNAL_NUMBER_QUIT;
}

static bool is_within(struct instant since, struct duration bound, struct instant now) {
    return instant_is_before(now, instant_after(since, bound));
}

static bool is_repetition(
    const struct signal_repetition *repetition, int signal, struct instant now) {
    struct duration same = duration_from_milliseconds(SIGNAL_REPETITION_SAME_MILLISECONDS);
    if (signal == repetition->meant && is_within(repetition->meant_at, same, now)) {
        return true;
    }
    return !signal_repetition_is_from_keyboard(signal) &&
           is_within(repetition->first_at, duration_from_seconds(SIGNAL_REPETITION_SECONDS), now);
}

bool signal_repetition_take(struct signal_repetition *repetition, int signal, struct instant now) {
    bool is_first = repetition->first == 0;
    if (!is_first && is_repetition(repetition, signal, now)) {
        return true;
    }
    if (is_first) {
        repetition->first = signal;
        repetition->first_at = now;
    }
    repetition->meant = signal;
    repetition->meant_at = now;
    return false;
}
