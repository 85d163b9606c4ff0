# SPDX-License-Identifier: BSD-3-Clause
"""Where muster differs from torchrun on purpose. docs/compatibility.md states each with its reason under
the same name (test_compatibility_page_names_every_chosen_difference), and the comparisons read their
exceptions from here, so neither can be forgotten."""

# Environment variables of a worker that only one of the two sets, or sets differently.
ENVIRONMENT = {}

# Names in the log tree.
LOG_TREE = {}

# Command lines that torchrun refuses in another way or not at all: argument list -> (name, torchrun, muster),
# each outcome "accepted", "usage" (exit status 2) or "error" (exit status 1).
ARGUMENTS = {}

# Everything else that the page must state.
BEHAVIOUR = []


def all_names():
    names = set(BEHAVIOUR)
    for group in (ENVIRONMENT, LOG_TREE):
        names.update(group.values())
    names.update(entry[0] for entry in ARGUMENTS.values())
    return names
