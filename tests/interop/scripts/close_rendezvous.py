# SPDX-License-Identifier: BSD-3-Clause
"""close_rendezvous.py PORT RUN_ID: closes the rendezvous of a running job, as a program may do through PyTorch."""

import sys

from torch.distributed.elastic.rendezvous import RendezvousParameters
from torch.distributed.elastic.rendezvous.c10d_rendezvous_backend import create_backend
from torch.distributed.elastic.rendezvous.dynamic_rendezvous import DynamicRendezvousHandler

port, run_id = sys.argv[1:]
parameters = RendezvousParameters("c10d", f"127.0.0.1:{port}", run_id, 1, 4, is_host="false")
backend, store = create_backend(parameters)
DynamicRendezvousHandler.from_backend(run_id, store, backend, 1, 4).set_closed()
