/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/pickle/pickle_class.h"

#define RENDEZVOUS_MODULE "torch.distributed.elastic.rendezvous.dynamic_rendezvous"

struct known_class {
    const char *module;
    const char *old_module; /* its module in Python 2, which protocol 2 names; or NULL */
    const char *name;
};

static const struct known_class known_classes[] = {
    [PICKLE_CLASS_RENDEZVOUS_STATE] = {RENDEZVOUS_MODULE, NULL, "_RendezvousState"},
    [PICKLE_CLASS_NODE] = {RENDEZVOUS_MODULE, NULL, "_NodeDesc"},
    [PICKLE_CLASS_DATETIME] = {"datetime", NULL, "datetime"},
    [PICKLE_CLASS_TIMEZONE] = {"datetime", NULL, "timezone"},
    [PICKLE_CLASS_TIMEDELTA] = {"datetime", NULL, "timedelta"},
    [PICKLE_CLASS_SET] = {"builtins", "__builtin__", "set"},
    [PICKLE_CLASS_ENCODE] = {"_codecs", NULL, "encode"},
};

static bool is_module(const struct known_class *known, struct slice module) {
    return slice_equals(module, slice_from_string(known->module)) ||
           (known->old_module != NULL &&
               slice_equals(module, slice_from_string(known->old_module)));
}

bool pickle_class_find(struct slice module, struct slice name, enum pickle_class *out_class) {
    for (size_t i = 0; i < sizeof known_classes / sizeof *known_classes; i++) {
        if (slice_equals(name, slice_from_string(known_classes[i].name)) &&
            is_module(&known_classes[i], module)) {
            *out_class = (enum pickle_class)i;
            return true;
        }
    }
    return false;
}

const char *pickle_class_module(enum pickle_class of_class) {
    return known_classes[of_class].module;
}

const char *pickle_class_name(enum pickle_class of_class) {
    return known_classes[of_class].name;
}
