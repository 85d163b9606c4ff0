/* SPDX-License-Identifier: BSD-3-Clause */
#include "standby_notice.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* In front of the record: STANDBY_RECORD_HEAD of src/wire/standby/standby_record.h. */
#define PAGE 4096

static void take_mutex(pthread_mutex_t *mutex) {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    if (pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED) == 0 &&
        pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST) == 0 &&
        pthread_mutex_init(mutex, &attributes) == 0) {
        (void)pthread_mutex_lock(mutex);
    }
    pthread_mutexattr_destroy(&attributes);
}

void muster_standby_arrange_notice(int record) {
    struct stat status;
    if (syscall(SYS_gettid) != getpid() || fstat(record, &status) != 0 || status.st_size < PAGE) {
        return;
    }
    void *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, record, 0);
    if (page != MAP_FAILED) {
        take_mutex(page); /* which the end of the process gives back */
    }
}
