/* SPDX-License-Identifier: BSD-3-Clause */
#include "library/library_memory.h"

#include <errno.h>

#include "base/memory.h"
#include "library/library_failure.h"

/* For what libuv and others take, which know nothing of the house's reserve. */
#define FOREIGN_BYTES 65536

enum muster_error library_memory_check(struct muster_failure *out_failure) {
    if (spare_memory_keep_reserve() && spare_memory_is_there(FOREIGN_BYTES)) {
        return MUSTER_OK;
    }
    return library_fail(out_failure, MUSTER_ERROR_MEMORY, "there is no memory");
}

bool library_memory_is_there(void) {
    if (library_memory_check(NULL) != MUSTER_OK) {
        errno = ENOMEM;
        return false;
    }
    return true;
}
