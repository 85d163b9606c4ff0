# SPDX-License-Identifier: BSD-3-Clause
"""Where muster differs from torchrun on purpose, by the titles under which docs/compatibility.md gives the
reasons. The comparisons take their exceptions from here, and a test keeps the two in step."""

MISTAKES = "Mistakes end with usage and status 2."
RANKS = "Local ranks above 9 can be named in `-r` and `-t`."
ITSELF = "`--nproc` is not ambiguous with itself."
CHOICES = "Variables are held to the same choices as options."
LOG_LINES = "The agent's own lines are worded differently."
ROOT_CAUSE = "The failure report names the root cause first."
LAST_LINES = "The failure report has the end of the failed worker's stderr"
NO_TRACEBACK = "The failure report is not preceded by a Python traceback of the launcher"
HOST = "The failure report names this machine"
WORDS = "Death is told in words."
EVENTS = "Events tell the time and each worker's own end."
ONE_REPORT = "One node has the failure report."
ONE_LINE = "A closing signal is one line a node"
NODE_NAMES = "Directories of several nodes are told apart."
REMOVED = "What is removed while a job runs is made anew"
ATTEMPTS = "No attempt's directory is used twice."
EMPTY_LOGS = "A default log directory nobody wrote into is removed at the end"
PIPES = "Redirected streams are pipes to the agent"
RUN_IDS = "Any run id makes a directory"
RENAMED = "The launcher's error file is renamed into place"
ADDRESS = "MASTER_ADDR can be reached."
FRESH_STORE = "Each attempt gets a fresh store."
TOGETHER = "Nodes of a static job restart together."
RESTART_COUNT = "TORCHELASTIC_RESTART_COUNT is the job's"
LEFT_BEHIND = "Processes a worker leaves behind are ended"
TIMERS = "An expired timer ends its process, not the agent"
LOCAL_TIMERS = "Timers between a parent and its forked children"
AGENTS = "Agents in programs"
RENDEZVOUS = "A rendezvous in programs"
EVIDENCE = "Hanging workers are looked at before they are killed"
NO_ORPHANS = "Workers die with the agent"
PRINTABLE = "Text of others does nothing to the terminal"
DEVICES = "A word for devices is asked of the workers' Python."
CHRONICLE = "A log directory has the job's chronicle, too."
OWN_LINKS = "Another user's link is not followed."

ALL = [value for name, value in list(globals().items()) if name.isupper()]

# Command line -> (title, what torchrun makes of it, what muster makes of it).
ARGUMENTS = {
    "--nproc 2 script.py": (ITSELF, "usage", "accepted"),
    "PET_START_METHOD=zz script.py": (CHOICES, "accepted", "usage"),
    "--nproc-per-node two script.py": (DEVICES, "error", "error"),
    "-t 10:1 script.py": (RANKS, "error", "accepted"),
}
