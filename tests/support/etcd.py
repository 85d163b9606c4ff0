# SPDX-License-Identifier: BSD-3-Clause
"""Real etcd of one or more members on this machine or on hosts of a network, with or without TLS, and what befalls them."""

import os
import pathlib
import shutil
import signal
import subprocess
import time

import pytest

from support.network import run
from support.peers import DEFAULT_ROOT, give_up
from support.ports import free_port

ENVIRONMENT = {**os.environ, "ETCD_UNSUPPORTED_ARCH": "arm64"}


def require_etcd():
    missing = [name for name in ("etcd", "openssl") if shutil.which(name) is None]
    if not missing:
        return
    give_up(f"{', '.join(missing)} not found (Debian: apt install etcd-server openssl)")


def require_other_etcd():
    """The etcd beside PyTorch: that of a later Debian."""
    program = pathlib.Path(os.environ.get("PEER_ROOT", DEFAULT_ROOT)).parent / "bin" / "etcd"
    if not program.exists():
        give_up(f"{program} not found; run `make peers`")
    probe = subprocess.run([program, "--version"], capture_output=True, text=True, cwd="/tmp")
    if probe.returncode != 0:
        give_up(f"{program} does not run ({probe.stderr.strip()}); run `make peers` as root")
    return program


def make_certificates(place):
    """An authority (ca.pem), a server's certificate for 127.0.0.1, a client's, and one of another authority."""

    def openssl(*words):
        subprocess.run(["openssl", *words], check=True, capture_output=True, cwd=place, timeout=120)

    for authority in ("ca", "other"):
        openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", f"{authority}.key", "-out", f"{authority}.pem",
                "-days", "3650", "-subj", f"/CN=the {authority} of a test")  # fmt: skip
    (place / "names").write_text("subjectAltName=IP:127.0.0.1\nextendedKeyUsage=serverAuth,clientAuth\n", encoding="utf-8")
    for name, authority in (("server", "ca"), ("client", "ca"), ("stranger", "other")):
        openssl("req", "-newkey", "rsa:2048", "-nodes", "-keyout", f"{name}.key", "-out", f"{name}.request", "-subj", f"/CN={name}")
        openssl("x509", "-req", "-in", f"{name}.request", "-CA", f"{authority}.pem", "-CAkey", f"{authority}.key",
                "-CAcreateserial", "-days", "3650", "-extfile", "names", "-out", f"{name}.pem")  # fmt: skip


def fields_of(message):
    """The fields of a protobuf message of numbers and byte strings, by number."""
    fields, rest = {}, list(message)

    def number():
        value, shift = 0, 0
        while True:
            byte = rest.pop(0)
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while rest:
        tag = number()
        value = number()
        if tag & 7 == 2:
            value, rest = bytes(rest[:value]), rest[value:]
        fields[tag >> 3] = value
    return fields


class Etcd:
    def __init__(self, place, members=1, trust=None, program="etcd", hosts=(), options=()):
        """`trust`: a folder of make_certificates; then members speak TLS and want a client's certificate. `hosts`
        of a network, one for each member; else all are here."""
        self.place, self.trust, self.program, self.hosts, self.options = place, trust, program, hosts, options
        scheme = "https" if trust else "http"
        addresses = [host.address for host in hosts] or ["127.0.0.1"] * members
        self.clients = [f"{address}:{free_port()}" for address in addresses]
        self.urls = [f"{scheme}://{client}" for client in self.clients]
        self.peers = [f"http://{address}:{free_port()}" for address in addresses]
        self.processes = [None] * members
        for member in range(members):
            self.start(member)
        for member in range(members):
            self.await_member(member)

    @property
    def endpoints(self):
        return ",".join(self.clients)

    def on_its_host(self, member, words):
        return self.hosts[member].command(words) if self.hosts else words

    def start(self, member):
        command = [self.program, "--name", f"m{member}", "--data-dir", f"{self.place}/m{member}",
                   "--listen-client-urls", self.urls[member], "--advertise-client-urls", self.urls[member],
                   "--listen-peer-urls", self.peers[member], "--initial-advertise-peer-urls", self.peers[member],
                   "--initial-cluster", ",".join(f"m{i}={url}" for i, url in enumerate(self.peers)), *self.options]  # fmt: skip
        if self.trust:
            command += ["--cert-file", f"{self.trust}/server.pem", "--key-file", f"{self.trust}/server.key",
                        "--trusted-ca-file", f"{self.trust}/ca.pem", "--client-cert-auth"]  # fmt: skip
        with open(f"{self.place}/m{member}.log", "ab") as log:
            words = self.on_its_host(member, command)
            self.processes[member] = subprocess.Popen(words, stdout=log, stderr=log, env=ENVIRONMENT, cwd=self.place)

    def call(self, member, path, message=b"", timeout=5):
        """The grpc-status that the member answers with, or None."""
        return self.ask(member, path, message, timeout)[0]

    def ask(self, member, path, message=b"", timeout=5):
        """The same, and the message of the answer."""
        (self.place / "answer").write_bytes(b"")
        (self.place / "question").write_bytes(b"\0" + len(message).to_bytes(4, "big") + message)
        words = ["--cacert", f"{self.trust}/ca.pem", "--cert", f"{self.trust}/client.pem",
                 "--key", f"{self.trust}/client.key"] if self.trust else ["--http2-prior-knowledge"]  # fmt: skip
        command = [
            "curl", "-s", "--noproxy", "*", "-m", str(timeout), *words, "-H", "content-type: application/grpc", "-H", "te: trailers",
            "-H", "hasleader: true", "--data-binary", f"@{self.place}/question", "-D", "-", "-o", f"{self.place}/answer",
            self.urls[member] + path,
        ]  # fmt: skip
        answer = subprocess.run(self.on_its_host(member, command), capture_output=True, text=True, timeout=60)
        found = [line.split(":")[1].strip() for line in answer.stdout.splitlines() if line.startswith("grpc-status:")]
        return int(found[-1]) if found else None, (self.place / "answer").read_bytes()[5:]

    def compact(self, member=0):
        """What was before now is not kept any more."""
        _, message = self.ask(member, "/etcdserverpb.KV/Range", b"\x0a\x01k")
        revision, number = fields_of(fields_of(message)[1])[3], b""
        while revision > 127:
            number, revision = number + bytes([revision & 127 | 128]), revision >> 7
        return self.call(member, "/etcdserverpb.KV/Compact", b"\x08" + number + bytes([revision]))

    def leader(self):
        """The number of the member that leads, once there is one."""
        for _ in range(600):
            for member in range(len(self.processes)):
                status, message = self.ask(member, "/etcdserverpb.Maintenance/Status")
                fields = fields_of(message)
                if status == 0 and fields.get(4) and fields[4] == fields_of(fields[1])[2]:
                    return member
            time.sleep(0.2)
        return pytest.fail(f"etcd has no leader: see {self.place}")

    def await_member(self, member):
        """Until it answers a read of a key, for which there must be a leader."""
        for _ in range(600):
            if self.call(member, "/etcdserverpb.KV/Range", b"\x0a\x01k") == 0:
                return
            assert self.processes[member].poll() is None, (self.place / f"m{member}.log").read_text(encoding="utf-8")
            time.sleep(0.2)
        pytest.fail(f"etcd does not become ready: see {self.place}/m{member}.log")

    def signal(self, member, number):
        self.processes[member].send_signal(number)

    def kill(self, member):
        self.signal(member, signal.SIGKILL)
        self.processes[member].wait(timeout=60)

    def cut_from_others(self, member):
        """The other members are out of its reach, and it is out of theirs; whoever is not a member reaches all."""
        self.change_routes("add", member)

    def join_others(self, member):
        self.change_routes("delete", member)

    def change_routes(self, change, member):
        for other in self.hosts:
            if other is not self.hosts[member]:
                run("ip", "-n", self.hosts[member].namespace, "route", change, "blackhole", f"{other.address}/32")

    def end(self):
        for process in self.processes:
            if process is not None and process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.kill()
                process.wait(timeout=60)
