# SPDX-License-Identifier: BSD-3-Clause
"""Several machines on this one: network namespaces with names and addresses of their own, joined by a
switch whose cables can be pulled. Needs root; nothing of the real machine's network is touched.

    network = Network(scratch, 3)
    one, two, three = network.hosts
    muster.start(["run", …], on=one)    # there `hostname` says node1, and node2 is 10.77.0.2
    two.unplug()                        # not a packet comes or goes, and nobody is told
    network.end()
"""

import itertools
import os
import pathlib
import shutil
import signal
import subprocess

import pytest

from support.peers import DEFAULT_ROOT, give_up

PROGRAMS = ("ip", "nsenter", "unshare", "mount")

# Enters the host: its network, its name, its /etc/hosts (that of an installed peer too, which lives in a
# directory tree of its own); then becomes the program, so that the process id is the program's.
ENTRANCE = """\
name=$1 hosts=$2 peer_hosts=$3
shift 3
hostname "$name" && mount --bind "$hosts" /etc/hosts || exit 125
if [ -e "$peer_hosts" ]; then mount --bind "$hosts" "$peer_hosts" || exit 125; fi
exec "$@"
"""

# What a gateway sends out for those behind it has its own address.
TRANSLATION = (
    "add table ip nat; add chain ip nat out { type nat hook postrouting priority 100 ; }; "
    "add rule ip nat out oifname eth0 masquerade"
)

serial_numbers = itertools.count(1)


def run(*words):
    end = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=30)
    assert end.returncode == 0, f"{' '.join(map(str, words))}: {end.stderr}"
    return end.stdout


class Host:
    """One machine: a name, an address of each family, a cable to the switch."""

    def __init__(self, network, number):
        self.network, self.number = network, number
        self.name = f"node{number}"
        self.address = f"10.77.0.{number}"
        self.ipv6_address = f"fd77::{number:x}"
        self.namespace = f"{network.label}-{self.name}"
        self.port = f"port{number}"

    def set_up(self):
        run("ip", "netns", "add", self.namespace)
        here = ("ip", "-n", self.namespace)
        run(*here, "link", "set", "lo", "up")
        self.network.connect(self)
        run(*here, "address", "add", f"{self.address}/24", "dev", "eth0")
        run(*here, "address", "add", f"{self.ipv6_address}/64", "dev", "eth0", "nodad")
        run(*here, "link", "set", "eth0", "up")

    def command(self, words):
        """The same command, on this host."""
        peer_hosts = pathlib.Path(os.environ.get("PEER_ROOT", DEFAULT_ROOT)) / "etc" / "hosts"
        return [
            "nsenter", f"--net=/run/netns/{self.namespace}", "unshare", "--mount", "--uts",
            "sh", "-c", ENTRANCE, "sh", self.name, str(self.network.hosts_file), str(peer_hosts),
            *(str(word) for word in words),
        ]  # fmt: skip

    def run(self, *words):
        """Runs a short command here; returns what it printed, fails the test when it fails."""
        return run(*self.command(words))

    def unplug(self):
        """Pulls the cable out of the switch."""
        self.network.set_cable(self, "down")

    def plug(self):
        self.network.set_cable(self, "up")

    def link_down(self):
        """Switches the host's own interface off, of which the host itself knows at once."""
        run("ip", "-n", self.namespace, "link", "set", "eth0", "down")

    def link_up(self):
        """Switches it on again (the kernel has forgotten the IPv6 address meanwhile)."""
        run("ip", "-n", self.namespace, "link", "set", "eth0", "up")
        run("ip", "-n", self.namespace, "address", "replace", f"{self.ipv6_address}/64", "dev", "eth0", "nodad")

    def connections(self, port):
        """How many TCP connections this host's programs have at this local port."""
        table = self.run("cat", "/proc/net/tcp", "/proc/net/tcp6").splitlines()
        rows = [line.split() for line in table if ":" in line]
        return sum(row[1].endswith(f":{port:04X}") and row[3] == "01" for row in rows)

    def processes(self):
        return [int(pid) for pid in run("ip", "netns", "pids", self.namespace).split()]


class HiddenHost(Host):
    """A host behind another, the gateway, whose address it has in the eyes of all others: its own, which is the
    same for every hidden host, is translated (nft). It reaches the others by IPv4; none of them reaches it."""

    def __init__(self, network, number, gateway):
        super().__init__(network, number)
        self.gateway, self.address = gateway, "192.168.77.2"

    def set_up(self):
        run("ip", "netns", "add", self.namespace)
        here, gateway = ("ip", "-n", self.namespace), ("ip", "-n", self.gateway.namespace)
        run(*here, "link", "set", "lo", "up")
        run(*here, "link", "add", "eth0", "type", "veth", "peer", "name", "inside", "netns", self.gateway.namespace)
        run(*gateway, "address", "add", "192.168.77.1/24", "dev", "inside")
        run(*gateway, "link", "set", "inside", "up")
        run(*here, "address", "add", f"{self.address}/24", "dev", "eth0")
        run(*here, "link", "set", "eth0", "up")
        run(*here, "route", "add", "default", "via", "192.168.77.1")
        on_gateway = ("ip", "netns", "exec", self.gateway.namespace)
        run(*on_gateway, "sh", "-c", "echo 1 >/proc/sys/net/ipv4/ip_forward")
        run(*on_gateway, "nft", TRANSLATION)


class Network:
    """`count` hosts node1, node2, … joined by a switch. End it with end(), also when making it failed."""

    def __init__(self, scratch, count):
        self.label = f"muster-{os.getpid()}-{next(serial_numbers)}"
        self.switch = f"{self.label}-switch"
        self.hosts_file = pathlib.Path(scratch) / f"{self.label}.hosts"
        self.hosts = [Host(self, number) for number in range(1, count + 1)]
        self.name_hosts(self.hosts)
        try:
            self.make_switch()
            for host in self.hosts:
                host.set_up()
        except BaseException:
            self.end()
            raise

    def hide(self, gateway):
        """One more host, behind that one; a skip that says why where addresses cannot be translated here."""
        require_translation(gateway)
        host = HiddenHost(self, len(self.hosts) + 1, gateway)
        self.hosts.append(host)
        self.name_hosts(self.hosts)
        host.set_up()
        return host

    def make_switch(self):
        run("ip", "netns", "add", self.switch)
        run("ip", "-n", self.switch, "link", "add", "bridge0", "type", "bridge")
        run("ip", "-n", self.switch, "link", "set", "bridge0", "up")

    def connect(self, host):
        """Gives the host its eth0."""
        eth0 = ("link", "add", "eth0", "type", "veth", "peer", "name", host.port, "netns", self.switch)
        run("ip", "-n", host.namespace, *eth0)
        run("ip", "-n", self.switch, "link", "set", host.port, "master", "bridge0", "up")

    def set_cable(self, host, state):
        run("ip", "-n", self.switch, "link", "set", host.port, state)

    def name_hosts(self, hosts, names=None):
        """Makes these hosts' names known everywhere, those of others not; also later, to running programs.
        `names` of one host, by its own, are known in the place of that, the qualified one first."""
        lines = ["127.0.0.1 localhost", "::1 localhost"]
        lines += [f"{host.address} {(names or {}).get(host.name, host.name)}" for host in hosts]
        self.hosts_file.write_text("\n".join(lines) + "\n", encoding="ascii")

    def end(self):
        """Kills what still runs on the hosts, and takes the network away."""
        present = {line.split()[0] for line in run("ip", "netns", "list").splitlines()}
        for host in self.hosts:
            if host.namespace in present:
                for pid in host.processes():
                    try:
                        os.kill(pid, signal.SIGKILL)
                    except ProcessLookupError:
                        pass
                run("ip", "netns", "delete", host.namespace)
        if self.switch in present:
            run("ip", "netns", "delete", self.switch)


def find_obstacle():
    """Why no network can be made here, or None."""
    missing = [program for program in PROGRAMS if shutil.which(program) is None]
    if missing:
        return f"{', '.join(missing)} not found (Debian: apt install iproute2 util-linux)"
    probe = subprocess.run(["unshare", "--net", "--mount", "--uts", "true"], capture_output=True, text=True)
    if probe.returncode != 0 or os.geteuid() != 0:
        who = "network namespaces need root" if os.geteuid() != 0 else "no network namespace can be made here"
        return f"{who} ({probe.stderr.strip() or 'unshare works, but ip netns does not'})"
    return None


def require_translation(host):
    if shutil.which("nft") is None:
        pytest.skip("nft not found (Debian: apt install nftables)")
    probe = subprocess.run(
        ["ip", "netns", "exec", host.namespace, "nft", "--check", TRANSLATION], capture_output=True, text=True
    )
    if probe.returncode != 0:
        pytest.skip(f"this kernel translates no addresses ({probe.stderr.strip()})")


def require_network():
    obstacle = find_obstacle()
    if obstacle is not None:
        give_up(obstacle)
