# SPDX-License-Identifier: BSD-3-Clause
"""A worker of a storm with standby workers: it imports something first."""

import signal

signal.signal(signal.SIGINT, signal.SIG_DFL)  # without a word

import decimal  # noqa: E402, F401
import os  # noqa: E402
import sys  # noqa: E402
import xml.dom.minidom  # noqa: E402, F401

os.execv(sys.argv[1], ["soak_worker"])
