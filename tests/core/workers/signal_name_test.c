/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <signal.h>

#include "core/workers/signal_name.h"

TEST(numbers_are_those_of_this_system) {
    static const struct {
        const char *name;
        int number;
    } known[] = {{"SIGHUP", SIGHUP}, {"SIGINT", SIGINT}, {"SIGQUIT", SIGQUIT}, {"SIGABRT", SIGABRT},
        {"SIGBUS", SIGBUS}, {"SIGFPE", SIGFPE}, {"SIGKILL", SIGKILL}, {"SIGUSR1", SIGUSR1},
        {"SIGSEGV", SIGSEGV}, {"SIGUSR2", SIGUSR2}, {"SIGPIPE", SIGPIPE}, {"SIGTERM", SIGTERM},
        {"SIGCHLD", SIGCHLD}, {"SIGCONT", SIGCONT}, {"SIGSTOP", SIGSTOP}, {"SIGXCPU", SIGXCPU},
        {"SIGWINCH", SIGWINCH}, {"SIGIO", SIGIO}, {"SIGSYS", SIGSYS}, {"SIGIOT", SIGIOT},
        {"SIGPOLL", SIGPOLL}, {"SIGCLD", SIGCHLD}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        assert_int_equal(signal_number_from_name(known[i].name), known[i].number);
    }
    assert_int_equal(signal_number_from_name("SIGRTMIN"), SIGRTMIN);
    assert_int_equal(signal_number_from_name("SIGRTMAX"), SIGRTMAX);
}

TEST(every_name_leads_back_to_its_number) {
    for (int number = 1; number <= SIGNAL_NUMBER_REAL_TIME_LAST; number++) {
        const char *name = signal_name_from_number(number);
        if (number == 32 || number == 33) { /* used by the C library itself */
            assert_null(name);
            continue;
        }
        assert_non_null(name);
        assert_int_equal(signal_number_from_name(name), number);
    }
}

TEST(real_time_signals_count_from_either_end) {
    assert_int_equal(signal_number_from_name("SIGRTMIN+30"), SIGNAL_NUMBER_REAL_TIME_LAST);
    assert_int_equal(signal_number_from_name("SIGRTMAX-30"), SIGNAL_NUMBER_REAL_TIME_FIRST);
    assert_int_equal(signal_number_from_name("SIGRTMIN+0"), SIGNAL_NUMBER_REAL_TIME_FIRST);
    assert_string_equal(signal_name_from_number(35), "SIGRTMIN+1");
}

TEST(other_texts_are_no_signals) {
    static const char *const wrong[] = {"", "TERM", "sigterm", "15", "SIGTERM ", "SIGNOPE",
        "SIGRTMIN+31", "SIGRTMIN+", "SIGRTMIN+1x", "SIGRTMAX-100", "SIGRTMIN-1"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(signal_number_from_name(wrong[i]), 0);
    }
    assert_null(signal_name_from_number(0));
    assert_null(signal_name_from_number(-9));
    assert_null(signal_name_from_number(65));
}
