/* SPDX-License-Identifier: BSD-3-Clause */
/* The settings of muster/rendezvous.h, checked, as the house's launch configuration. */
#ifndef MUSTER_LIBRARY_RENDEZVOUS_WORDING_H
#define MUSTER_LIBRARY_RENDEZVOUS_WORDING_H

#include <muster/rendezvous.h>

#include "core/launch/launch_config.h"
#include "core/rendezvous/rendezvous_machine.h"

/* Checks what was given, which has its full size already, and turns it into the house's words. The
 * caller clears the configuration; without an endpoint it has no host. */
enum muster_error rendezvous_wording_read(const struct muster_rendezvous_settings *given,
    struct launch_config *out_config, struct muster_failure *failure);

/* The machine of a node with this configuration, by a new name. It may ask a name server. */
__attribute__((warn_unused_result)) enum failure_code rendezvous_wording_of_machine(
    const struct launch_config *config, bool is_torchrun,
    struct rendezvous_machine_settings *out_settings, struct failure *failure);

#endif
