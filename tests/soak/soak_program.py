# SPDX-License-Identifier: BSD-3-Clause
"""A worker of a storm with standby workers: it imports something first."""

import decimal  # noqa: F401
import os
import sys
import xml.dom.minidom  # noqa: F401

os.execv(sys.argv[1], ["soak_worker"])
