/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/process/death_notice.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/table.h"
#include "host/loop/blocking_pool.h"
#include "host/loop/files.h"
#include "host/process/process_table.h"

/* Numbers of signals that stop a process show up in the same field, but end nobody. */
static bool is_stop(int signal) {
    return signal == SIGSTOP || signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU;
}

static bool read_exit(int wait_status, struct process_exit *out_exit) {
    if (WIFSIGNALED(wait_status) && !is_stop(WTERMSIG(wait_status))) {
        *out_exit = (struct process_exit){.is_signal = true,
            .value = WTERMSIG(wait_status),
            .has_dumped_core = WCOREDUMP(wait_status)};
        return true;
    }
    if (WIFEXITED(wait_status) && WEXITSTATUS(wait_status) != 0) {
        *out_exit = (struct process_exit){.value = WEXITSTATUS(wait_status)};
        return true;
    }
    return false;
}

struct threads {
    pid_t first;
    bool are_ending;
};

static bool visit_thread(void *context, int thread) {
    struct threads *threads = context;
    struct kernel_process_stat stat;
    if (thread == threads->first || !process_table_read(thread, &stat)) {
        return true;
    }
    bool is_killed = (stat.pending >> (SIGKILL - 1) & 1) != 0;
    bool is_ending = (stat.flags & (KERNEL_PROCESS_EXITING | KERNEL_PROCESS_DUMPED)) != 0;
    threads->are_ending = is_killed || is_ending;
    return threads->are_ending;
}

/* A thread can end alone. When the process ends, the kernel kills all others at the same moment. */
static bool are_others_ending(pid_t pid) {
    char path[NUMBER_PATH_SIZE];
    struct threads threads = {.first = pid, .are_ending = true};
    number_path_format(path, "/proc/", pid, "/task");
    return number_directory_each(path, visit_thread, &threads) && threads.are_ending;
}

/* Whether a process is ending, and how. When the kernel ends a process it notes first how, and
 * takes its memory down then, which can take long. Only after that is anybody told, who can wait
 * for it. Until then /proc/PID/stat has what waitpid will say. */

/* False when that process (the one with this start time, see kernel_text_read_stat) is not ending
 * or is gone, when it ends with success, when only its first thread ends, and when the kernel does
 * not show it. May wait for a short while, as long as the kernel needs to take a process down. */
static bool process_ending_read(pid_t pid, uint64_t start_time, struct process_exit *out_exit) {
    struct kernel_process_stat stat;
    struct process_exit exit;
    if (!process_table_read(pid, &stat) || stat.start_time != start_time ||
        (stat.flags & KERNEL_PROCESS_EXITING) == 0 || !read_exit(stat.wait_status, &exit)) {
        return false;
    }
    /* SIGKILL ends no thread alone. */
    if (!(exit.is_signal && exit.value == SIGKILL) && !are_others_ending(pid)) {
        return false;
    }
    *out_exit = exit;
    return true;
}

/* Death notice. */

static const char thread_name[] = "muster-deaths";

/* A process that wakes its waiter more often is up to something. */
#define MOST_WAKES 16
#define WORD_COUNT (DEATH_NOTICE_MUTEX / sizeof(uint32_t))

/* What the thread and the loop share, freed by the last who uses it. */
struct vigil {
    void *page;
    /* Unchanging while there is a thread. */
    _Atomic uint32_t *word; /* of the mutex; NULL: not found yet */
    pid_t pid;
    uint64_t start_time;
    /* Under the mutex. */
    pthread_mutex_t mutex;
    struct event_wake *wake; /* NULL: the loop has gone */
    struct process_exit exit;
    bool is_ending;
    int user_count;
};

struct death_notice {
    struct death_notice_events events;
    struct event_wake *wake;
    struct vigil *vigil;
};

static void release(struct vigil *vigil) {
    pthread_mutex_lock(&vigil->mutex);
    int users_left = --vigil->user_count;
    pthread_mutex_unlock(&vigil->mutex);
    if (users_left == 0) {
        munmap(vigil->page, DEATH_NOTICE_PAGE);
        pthread_mutex_destroy(&vigil->mutex);
        free(vigil);
    }
}

/* The thread. */

static bool is_over(struct vigil *vigil) {
    pthread_mutex_lock(&vigil->mutex);
    bool is_over = vigil->wake == NULL;
    pthread_mutex_unlock(&vigil->mutex);
    return is_over;
}

/* Returns when the owner has died. False when nobody waits any more, and when the page makes no
 * sense. */
static bool wait_for_death(struct vigil *vigil) {
    for (int wakes = 0; wakes < MOST_WAKES; wakes++) {
        uint32_t value = atomic_fetch_or(vigil->word, FUTEX_WAITERS) | FUTEX_WAITERS;
        if (is_over(vigil)) {
            return false;
        }
        if ((value & FUTEX_OWNER_DIED) != 0) {
            return true;
        }
        if ((value & FUTEX_TID_MASK) != (uint32_t)vigil->pid) {
            return false;
        }
        (void)syscall(SYS_futex, vigil->word, FUTEX_WAIT, value, NULL, NULL, 0);
    }
    return false;
}

static void *run(void *context) {
    struct vigil *vigil = context;
    struct process_exit exit;
    if (wait_for_death(vigil) && process_ending_read(vigil->pid, vigil->start_time, &exit)) {
        pthread_mutex_lock(&vigil->mutex);
        vigil->exit = exit;
        vigil->is_ending = true;
        if (vigil->wake != NULL) {
            event_wake_send(vigil->wake);
        }
        pthread_mutex_unlock(&vigil->mutex);
    }
    release(vigil);
    return NULL;
}

/* The loop. */

static void woken(void *context) {
    struct death_notice *notice = context;
    struct vigil *vigil = notice->vigil;
    pthread_mutex_lock(&vigil->mutex);
    bool is_ending = vigil->is_ending;
    struct process_exit exit = vigil->exit;
    vigil->is_ending = false;
    pthread_mutex_unlock(&vigil->mutex);
    if (is_ending) {
        notice->events.ending(notice->events.context, vigil->pid, &exit);
    }
}

/* Touches the page: the first write is one to the file as well, and sets its time. */
static enum failure_code map_page(int fd, void **out_page, struct failure *failure) {
    _Atomic uint32_t *page =
        mmap(NULL, DEATH_NOTICE_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (page == MAP_FAILED) {
        return failure_set_system(failure, errno, "cannot map a file in memory");
    }
    atomic_store(page, 0);
    *out_page = page;
    return FAILURE_NONE;
}

enum failure_code death_notice_new(struct event_loop *loop, int fd,
    const struct death_notice_events *events, struct death_notice **out_notice,
    struct failure *failure) {
    void *page = NULL;
    enum failure_code code = map_page(fd, &page, failure);
    if (code != FAILURE_NONE) {
        return code;
    }
    struct death_notice *notice = memory_allocate(sizeof *notice);
    struct vigil *vigil = memory_allocate(sizeof *vigil);
    notice->events = *events;
    notice->vigil = vigil;
    vigil->page = page;
    vigil->user_count = 1;
    pthread_mutex_init(&vigil->mutex, NULL);
    code = event_wake_new(loop, woken, notice, &notice->wake, failure);
    if (code != FAILURE_NONE) {
        death_notice_free(notice);
        return code;
    }
    vigil->wake = notice->wake;
    *out_notice = notice;
    return FAILURE_NONE;
}

/* The word changes before the thread is woken: so it does not begin to wait after that. Should the
 * process write into the page at this very moment, the thread sleeps on; it has its own share of
 * all that it uses. */
static void send_away(struct vigil *vigil) {
    pthread_mutex_lock(&vigil->mutex);
    vigil->wake = NULL;
    pthread_mutex_unlock(&vigil->mutex);
    if (vigil->word != NULL) {
        atomic_store(vigil->word, 0);
        (void)syscall(SYS_futex, vigil->word, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
    }
}

void death_notice_free(struct death_notice *notice) {
    if (notice != NULL) {
        send_away(notice->vigil);
        event_wake_free(notice->wake);
        release(notice->vigil);
        free(notice);
    }
}

/* The first of the mutex' words that has the number of the thread that owns it. */
static _Atomic uint32_t *find_word(const struct vigil *vigil, pid_t owner) {
    _Atomic uint32_t *words = vigil->page;
    for (size_t i = 0; i < WORD_COUNT; i++) {
        if ((atomic_load(&words[i]) & FUTEX_TID_MASK) == (uint32_t)owner) {
            return &words[i];
        }
    }
    return NULL;
}

static void start_vigil(struct vigil *vigil) {
    pthread_t thread;
    vigil->user_count++;
    if (quiet_thread_start(thread_name, run, vigil, &thread, NULL) == FAILURE_NONE) {
        pthread_detach(thread);
    } else {
        vigil->user_count--; /* the end is told as ever */
    }
}

void death_notice_look(struct death_notice *notice, pid_t pid) {
    struct kernel_process_stat stat;
    struct vigil *vigil = notice == NULL ? NULL : notice->vigil;
    if (vigil == NULL || vigil->word != NULL || pid <= 0) {
        return;
    }
    _Atomic uint32_t *word = find_word(vigil, pid);
    if (word != NULL && process_table_read(pid, &stat)) {
        vigil->word = word;
        vigil->pid = pid;
        vigil->start_time = stat.start_time;
        start_vigil(vigil);
    }
}

/* Death watch. */

struct watched {
    struct death_watch *watch;
    pid_t pid;
    int pidfd;
    struct event_descriptor *descriptor;
};

struct death_watch {
    struct event_loop *loop;
    struct table *watched; /* by pid */
    size_t maximum;
    void (*ended)(void *context, pid_t pid);
    void *context;
};

static struct slice pid_key(const pid_t *pid) {
    return (struct slice){(const uint8_t *)pid, sizeof *pid};
}

static void free_watched(void *value) {
    struct watched *watched = value;
    event_descriptor_free(watched->descriptor);
    close(watched->pidfd);
    free(watched);
}

struct death_watch *death_watch_new(struct event_loop *loop, size_t maximum,
    void (*ended)(void *context, pid_t pid), void *context) {
    struct death_watch *watch = memory_allocate(sizeof *watch);
    *watch = (struct death_watch){loop, table_new(free_watched), maximum, ended, context};
    return watch;
}

void death_watch_free(struct death_watch *watch) {
    if (watch != NULL) {
        table_free(watch->watched);
        free(watch);
    }
}

static void pidfd_readable(void *context) {
    struct watched *watched = context;
    struct death_watch *watch = watched->watch;
    pid_t pid = watched->pid;
    death_watch_remove(watch, pid);
    watch->ended(watch->context, pid);
}

bool death_watch_add(struct death_watch *watch, pid_t pid) {
    if (table_get(watch->watched, pid_key(&pid)) != NULL ||
        table_count(watch->watched) >= watch->maximum) {
        return true;
    }
    int pidfd = pidfd_open_process(pid);
    if (pidfd < 0) {
        return errno != ESRCH;
    }
    struct watched *watched = memory_allocate(sizeof *watched);
    *watched = (struct watched){.watch = watch, .pid = pid, .pidfd = pidfd};
    if (event_descriptor_new(watch->loop, pidfd, pidfd_readable, watched, &watched->descriptor,
            NULL) == FAILURE_NONE) {
        table_put(watch->watched, pid_key(&pid), watched);
    } else {
        free_watched(watched);
    }
    return true;
}

void death_watch_remove(struct death_watch *watch, pid_t pid) {
    table_remove(watch->watched, pid_key(&pid));
}

void death_watch_remove_all(struct death_watch *watch) {
    table_free(watch->watched);
    watch->watched = table_new(free_watched);
}
