// SPDX-License-Identifier: BSD-3-Clause
// The headers in a C++ program: a scope is left by an exception, too.
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <stdexcept>
#include <string>

#include "muster/local_timer.h"
#include "muster/standby.h"
#include "muster/timer.h"

static void fail_in_a_scope(struct muster_timer *timer) {
    MUSTER_TIMER_SCOPE(timer, MUSTER_TIMER_HERE, 30);
    throw std::runtime_error("a bad batch");
}

static std::string requests_of_a_failure(const std::string &path) {
    struct muster_timer timer;
    char data[MUSTER_TIMER_LINE_SIZE];
    int server = open(path.c_str(), O_RDONLY | O_NONBLOCK);
    if (server < 0 || muster_timer_open(&timer, path.c_str()) != 0) {
        return "";
    }
    try {
        fail_in_a_scope(&timer);
    } catch (const std::runtime_error &) {
    }
    ssize_t length = read(server, data, sizeof data);
    muster_timer_close(&timer);
    close(server);
    return std::string(data, length > 0 ? static_cast<size_t>(length) : 0);
}

static bool counts_local_requests() {
    struct muster_local_timer_queue *queue = muster_local_timer_queue_new();
    try {
        MUSTER_LOCAL_TIMER_SCOPE(queue, "s", 30);
        throw std::runtime_error("a bad batch");
    } catch (const std::runtime_error &) {
    }
    bool is_counted = queue != nullptr && muster_local_timer_queue_size(queue) == 2;
    muster_local_timer_queue_free(queue);
    return is_counted;
}

static bool waits_for_nobody() {
    return unsetenv("MUSTER_STANDBY") == 0 && muster_standby_wait() == 0;
}

int main() {
    char directory[] = "/tmp/muster_timer_XXXXXX";
    if (mkdtemp(directory) == nullptr) {
        return EXIT_FAILURE;
    }
    std::string path = std::string(directory) + "/timers";
    std::string requests;
    if (mkfifo(path.c_str(), 0600) == 0) {
        requests = requests_of_a_failure(path);
    }
    unlink(path.c_str());
    rmdir(directory);
    bool is_acquired = requests.find("timer_in_cpp.cpp:") != std::string::npos;
    bool is_released =
        requests.find("\"expiration_time\": -1, \"signal\": 0}\n") != std::string::npos;
    return is_acquired && is_released && counts_local_requests() && waits_for_nobody()
               ? EXIT_SUCCESS
               : EXIT_FAILURE;
}
