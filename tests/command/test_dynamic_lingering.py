# SPDX-License-Identifier: BSD-3-Clause
"""The agent that hosts the job's store leaves last, but not for ever."""

import signal
import socket
import time

from support.ports import free_port


def start_alone(muster, port, script):
    """A job of one or two nodes, of which one comes, and hosts the store."""
    return muster.start(
        ["run", "--nnodes", "1:2", "--rdzv-backend", "c10d", "--rdzv-endpoint", f"127.0.0.1:{port}",
         "--rdzv-id", "job", "--rdzv-conf", "last_call_timeout=1", "--local-addr", "127.0.0.1",
         "--no-python", "sh", "-c", script]
    )


def connect(port):
    deadline = time.monotonic() + 30
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port), timeout=30)
        except ConnectionRefusedError:
            assert time.monotonic() < deadline, "nobody hosts the store"
            time.sleep(0.01)


def test_a_signal_ends_the_hosts_waiting_for_others(muster, scratch):
    port = free_port()
    host = start_alone(muster, port, f": >{scratch}/done")
    with connect(port):  # somebody who still needs the store, for all the host knows
        host.wait_until((scratch / "done").exists, "the end of the only worker")
        time.sleep(0.3)
        assert host.process.poll() is None, "the host left while somebody was connected"
        host.signal(signal.SIGTERM)
        end = host.finish()
    assert end.status == 0, end
    assert "not waiting for other nodes any longer" in end.err


def test_the_host_leaves_when_the_last_other_has_left(muster, scratch):
    port = free_port()
    host = start_alone(muster, port, f": >{scratch}/done")
    with connect(port):
        host.wait_until((scratch / "done").exists, "the end of the only worker")
    end = host.finish()
    assert end.status == 0, end
    assert "still open" not in end.err
