# SPDX-License-Identifier: BSD-3-Clause
"""Several machines on this one whose cables are bad: the hosts of support.network, joined by a hub in user space
(lossy_hub.c), which loses, delays, cuts and resets, as told while programs run.

    network = LossyNetwork(scratch, 3, seed=7)
    one, two, three = network.hosts
    network.loss("*", "*", 0.3)     # 30 % of all frames, in each direction
    network.delay(one, two, 50)     # ms, from one to two only
    network.cut(two, one)           # two hears one, and is not heard there
    network.reset(one, "*")         # what is connected gets resets for what it sends
    network.mend("*", "*")
    three.unplug()                  # as in support.network
    network.end()
"""

import os
import pathlib
import stat
import subprocess

import pytest

from support.binary import ROOT
from support.network import Network, find_obstacle

BUILD = pathlib.Path(os.environ.get("MUSTER_BUILD", ROOT / "build"))
HUB = BUILD / "tests" / "lossy_hub"


class LossyNetwork(Network):
    def __init__(self, scratch, count, seed=1):
        self.seed, self.hub = seed, None
        super().__init__(scratch, count)

    def make_switch(self):
        self.hub = subprocess.Popen(
            [HUB, str(self.seed)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )

    def connect(self, host):
        self.tell("port", host.namespace)

    def tell(self, *words):
        """Commands the hub; returns once it has obeyed, with its counts: {"delivered": …, "lost": …, "reset": …}."""
        self.hub.stdin.write(" ".join(map(str, words)) + "\n")
        answer = self.hub.stdout.readline()
        assert answer.startswith("ok "), f"{words}: {answer or 'the hub has ended'}"
        pairs = (part.split() for part in answer.removeprefix("ok ").split(", "))
        return {what: int(number) for number, what in pairs}

    def change(self, verb, source, target, *value):
        ends = [getattr(end, "number", end) for end in (source, target)]
        return self.tell(verb, *ends, *value)

    def loss(self, source, target, fraction):
        return self.change("loss", source, target, fraction)

    def delay(self, source, target, milliseconds):
        return self.change("delay", source, target, milliseconds)

    def cut(self, source, target):
        return self.change("cut", source, target)

    def reset(self, source, target):
        return self.change("reset", source, target)

    def mend(self, source, target):
        return self.change("mend", source, target)

    def counts(self):
        return self.tell("count")

    def set_cable(self, host, state):
        verb = "cut" if state == "down" else "mend"
        self.change(verb, host, "*")
        self.change(verb, "*", host)

    def end(self):
        super().end()
        if self.hub is not None:
            self.hub.stdin.close()
            self.hub.wait(10)
            self.hub.stdout.close()


def has_tun():
    """Whether TAP devices can be made. A container may lack only the device's file, which is made here."""
    tun = pathlib.Path("/dev/net/tun")
    try:
        if not tun.exists():
            tun.parent.mkdir(exist_ok=True)
            os.mknod(tun, stat.S_IFCHR | 0o600, os.makedev(10, 200))
        os.close(os.open(tun, os.O_RDWR | os.O_CLOEXEC))
    except OSError:
        return False
    return True


def find_lossy_obstacle():
    """Why no such network can be made here, or None."""
    obstacle = find_obstacle()
    if obstacle is None and not has_tun():
        return "no /dev/net/tun (the kernel module tun, or the container's devices)"
    if obstacle is None and not HUB.exists():
        return f"{HUB} is not built (it needs cmocka: apt install libcmocka-dev)"
    return obstacle


def require_lossy_network():
    obstacle = find_lossy_obstacle()
    if obstacle is not None:
        pytest.skip(obstacle)
