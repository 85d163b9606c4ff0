/* SPDX-License-Identifier: BSD-3-Clause */
#include <muster/progress.h>

#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"
#include "core/standby/standby_preparation.h"
#include "wire/telling/progress_page.h"

_Static_assert((int)MUSTER_PROGRESS_WORD_COUNT == (int)PROGRESS_PAGE_WORDS &&
                   (int)MUSTER_PROGRESS_SAVED == (int)PROGRESS_WORD_SAVED &&
                   MUSTER_PROGRESS_OFFSET == PROGRESS_PAGE_OFFSET &&
                   MUSTER_PROGRESS_MAGIC == PROGRESS_PAGE_MAGIC,
    "the agent reads what the header says");

/* So often a page is looked for that the agent has not marked yet, since it has just started us. */
#define LOOKS_MAXIMUM 1000
#define NANOSECONDS 1000000000

static uint64_t *_Atomic page; /* NULL: there is none, or it has not been looked for */
static atomic_bool is_off;
static atomic_int looks;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* A child is no worker. */
static void go_off(void) {
    atomic_store(&page, NULL);
    atomic_store(&is_off, true);
}

static void arrange_children(void) {
    (void)pthread_atfork(NULL, NULL, go_off);
}

static bool is_file_of_agent(int fd) {
    static const char wanted[] = "/memfd:muster-";
    char path[64];
    char target[sizeof wanted];
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(path, target, sizeof target);
    return length >= (ssize_t)(sizeof wanted - 1) && memcmp(target, wanted, sizeof wanted - 1) == 0;
}

/* NULL: it is another file. */
static uint64_t *map(int fd) {
    struct stat status;
    if (!is_file_of_agent(fd) || fstat(fd, &status) != 0 || status.st_size < PROGRESS_PAGE_SIZE) {
        return NULL;
    }
    void *start = mmap(NULL, PROGRESS_PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    return start == MAP_FAILED ? NULL : (uint64_t *)((char *)start + MUSTER_PROGRESS_OFFSET);
}

static bool is_marked(const uint64_t *words) {
    return __atomic_load_n(&words[MUSTER_PROGRESS_MARK], __ATOMIC_ACQUIRE) == MUSTER_PROGRESS_MAGIC;
}

static bool is_ours(const uint64_t *words) {
    uint64_t worker = words[MUSTER_PROGRESS_WORKER];
    return worker == (uint64_t)getpid() ||
           (worker == 0 && words[MUSTER_PROGRESS_AGENT] == (uint64_t)getppid());
}

static uint64_t *search(int64_t told) {
    uint64_t *found = map((int)told);
    DIR *directory = found == NULL ? opendir("/proc/self/fd") : NULL;
    const struct dirent *entry;
    while (directory != NULL && found == NULL && (entry = readdir(directory)) != NULL) {
        int64_t fd;
        if (text_parse_integer(entry->d_name, &fd) == FAILURE_NONE) {
            found = map((int)fd);
        }
    }
    if (directory != NULL) {
        closedir(directory);
    }
    return found;
}

/* Several threads may come here; one's page is used. */
static uint64_t *find_page(void) {
    const char *told = getenv(PROGRESS_VARIABLE);
    int64_t fd;
    if (atomic_load(&is_off)) {
        return NULL;
    }
    uint64_t *found =
        told != NULL && text_parse_integer(told, &fd) == FAILURE_NONE && fd >= 0 && fd <= INT32_MAX
            ? search(fd)
            : NULL;
    bool is_early =
        found != NULL && !is_marked(found) && atomic_fetch_add(&looks, 1) < LOOKS_MAXIMUM;
    uint64_t *none = NULL;
    (void)pthread_once(&once, arrange_children);
    if (found == NULL || !is_marked(found) || !is_ours(found) ||
        !atomic_compare_exchange_strong(&page, &none, found)) {
        if (found != NULL) {
            munmap((char *)found - MUSTER_PROGRESS_OFFSET, PROGRESS_PAGE_SIZE);
        }
        if (!is_early && none == NULL) {
            atomic_store(&is_off, true);
        }
        return none;
    }
    return found;
}

static uint64_t *words_of_worker(void) {
    uint64_t *words = atomic_load_explicit(&page, memory_order_acquire);
    return words != NULL || atomic_load_explicit(&is_off, memory_order_relaxed) ? words
                                                                                : find_page();
}

static uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * NANOSECONDS + (uint64_t)time.tv_nsec;
}

static uint64_t get(const uint64_t *words, enum muster_progress_word word) {
    return __atomic_load_n(&words[word], __ATOMIC_RELAXED);
}

static void set(uint64_t *words, enum muster_progress_word word, uint64_t value) {
    __atomic_store_n(&words[word], value, __ATOMIC_RELAXED);
}

static void count(uint64_t *words, enum muster_progress_word word) {
    __atomic_store_n(&words[word], get(words, word) + 1, __ATOMIC_RELEASE);
}

void muster_progress_step(int64_t n) {
    uint64_t *words = words_of_worker();
    if (words == NULL || n < 0) {
        return;
    }
    uint64_t time = now();
    if (get(words, MUSTER_PROGRESS_COUNT) == 0) {
        set(words, MUSTER_PROGRESS_FIRST_STEP, (uint64_t)n);
        set(words, MUSTER_PROGRESS_FIRST, time);
    }
    set(words, MUSTER_PROGRESS_SOURCE, PROGRESS_PROGRAM);
    set(words, MUSTER_PROGRESS_STEP, (uint64_t)n);
    set(words, MUSTER_PROGRESS_STEPPED, time);
    count(words, MUSTER_PROGRESS_COUNT);
}

void muster_progress_checkpoint(int64_t n) {
    uint64_t *words = words_of_worker();
    if (words == NULL || n < 0) {
        return;
    }
    set(words, MUSTER_PROGRESS_SAVED_STEP, (uint64_t)n);
    set(words, MUSTER_PROGRESS_SAVED, now());
    count(words, MUSTER_PROGRESS_SAVES);
}

void muster_progress_wait_begin(void) {
    uint64_t *words = words_of_worker();
    if (words != NULL && get(words, MUSTER_PROGRESS_WAITS) == 0) {
        set(words, MUSTER_PROGRESS_WAITS, now());
    }
}

void muster_progress_wait_end(void) {
    uint64_t *words = words_of_worker();
    uint64_t began = words != NULL ? get(words, MUSTER_PROGRESS_WAITS) : 0;
    if (began != 0) {
        set(words, MUSTER_PROGRESS_WAITED, get(words, MUSTER_PROGRESS_WAITED) + now() - began);
        set(words, MUSTER_PROGRESS_WAITS, 0);
    }
}
