# SPDX-License-Identifier: BSD-3-Clause
"""A rendezvous whose record is a key of a store: torch/distributed/elastic/rendezvous/c10d_rendezvous_backend.py, without
PyTorch. The key and what it holds are PyTorch's, so nodes of both meet in it. It is for a store that the program has
anyhow: muster.rendezvous.Rendezvous with an endpoint learns of changes at once, which this one does not."""

import base64
import binascii
import contextlib
import os
import tempfile
from datetime import timedelta

from muster.rendezvous_api import RendezvousConnectionError, RendezvousError, RendezvousStateError
from muster.rendezvous_backend import RendezvousBackend
from muster.store import FileStore, TCPStore

DEFAULT_PORT = 29400
# Stores have no way to read a key that may not be there, so the key always is.
NO_STATE = "Y2FuaW1hZGFt"
LOST = "The connection to the C10d store has failed. See inner exception for details."


class C10dRendezvousBackend(RendezvousBackend):
    def __init__(self, store, run_id):
        if not run_id:
            raise ValueError("The run id must be a non-empty string.")
        self._store, self._key = store, "torch.rendezvous." + run_id
        self._ask("compare_set", self._key, "", NO_STATE)

    @property
    def name(self):
        return "c10d"

    def get_state(self):
        return self._decoded(self._ask("get", self._key))

    def set_state(self, state, token=None):
        if token and not isinstance(token, bytes):  # it is of no record
            found = self.get_state()
            return None if found is None else (*found, False)
        wanted = base64.b64encode(state)
        found = self._decoded(self._ask("compare_set", self._key, token or NO_STATE, wanted))
        return None if found is None else (*found, found[1] == wanted)

    def _ask(self, operation, *arguments):
        try:
            return getattr(self._store, operation)(*arguments)
        except (ValueError, RuntimeError, OSError) as wrong:
            raise RendezvousConnectionError(LOST) from wrong

    @staticmethod
    def _decoded(value):
        if value == NO_STATE.encode():
            return None
        try:
            return base64.b64decode(value), value
        except binascii.Error as wrong:
            raise RendezvousStateError("The state object is corrupt. See inner exception for details.") from wrong


def _place(endpoint):
    """HOST[:PORT], [IPV6]:PORT."""
    host, colon, port = endpoint.strip().rpartition(":")
    if not colon or (":" in host and not host.endswith("]")):
        host, port = endpoint.strip(), str(DEFAULT_PORT)
    if not port.isdigit() or not 0 <= int(port) < 65536:
        raise ValueError(f"The port number of the rendezvous endpoint '{endpoint}' must be an integer between 0 and 65536.")
    return host.strip("[]") or "localhost", int(port)


def _tcp_store(parameters):
    host, port = _place(parameters.endpoint)
    is_host = parameters.get_as_bool("is_host")
    timeout = parameters.get_as_int("read_timeout", 60)
    if timeout <= 0:
        raise ValueError("The read timeout must be a positive integer.")

    def store(is_master):
        try:
            return TCPStore(host, port, is_master=is_master, wait_for_workers=False, timeout=timedelta(seconds=timeout))
        except (ValueError, RuntimeError, OSError) as wrong:
            raise RendezvousConnectionError(LOST) from wrong

    if is_host is not None:
        return store(is_host)
    # Who is not told whether it hosts tries to, and finds who does.
    with contextlib.suppress(RendezvousConnectionError):
        return store(True)
    return store(False)


def _file_store(parameters):
    path = parameters.endpoint
    if not path:
        try:
            fd, path = tempfile.mkstemp()
            os.close(fd)
        except OSError as wrong:
            raise RendezvousError("The file creation for C10d store has failed. See inner exception for details.") from wrong
    try:
        return FileStore(path)
    except (ValueError, RuntimeError, OSError) as wrong:
        raise RendezvousConnectionError(LOST) from wrong


def create_backend(params):
    """(backend, store), from RendezvousParameters. The options are store_type (tcp, file), is_host and read_timeout."""
    kinds = {"file": _file_store, "tcp": _tcp_store}
    kind = params.get("store_type", "tcp").strip().lower()
    if kind not in kinds:
        raise ValueError("Invalid store type given. Currently only supports file and tcp.")
    store = kinds[kind](params)
    return C10dRendezvousBackend(store, params.run_id), store
