/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/register/etcd_failure.h"

#include <string.h>

static bool is_out_of_space(const struct grpc_result *result) {
    return result->status == GRPC_RESOURCE_EXHAUSTED &&
           strstr(result->why->message, "database space exceeded") != NULL;
}

bool etcd_failure_is_final(const struct grpc_result *result) {
    if (!result->is_answered) {
        return result->is_trust_failure;
    }
    return result->status == GRPC_INVALID_ARGUMENT || result->status == GRPC_PERMISSION_DENIED ||
           result->status == GRPC_FAILED_PRECONDITION || /* of users */
           result->status == GRPC_UNIMPLEMENTED || result->status == GRPC_UNAUTHENTICATED ||
           is_out_of_space(result);
}

const char *etcd_failure_advice(const struct grpc_result *result) {
    static const struct {
        const char *words;
        const char *advice;
    } advices[] = {
        {"user name is empty", "; give user and password, or password_file, in --rdzv-conf"},
        {"authentication failed", "; look at user and password in --rdzv-conf"},
        {"permission denied", "; the user needs a role that may read and write the keys from "
                              "muster/ up to muster0"},
        {"request is too large", "; let etcd take more (--max-request-bytes)"},
        {"database space exceeded", "; make room there (etcdctl compact, defrag, alarm disarm)"},
        {"authentication is not enabled",
            "; this etcd has no users: leave user out of --rdzv-conf"},
    };
    for (size_t i = 0; result->is_answered && i < sizeof advices / sizeof *advices; i++) {
        if (strstr(result->why->message, advices[i].words) != NULL) {
            return advices[i].advice;
        }
    }
    return "";
}
