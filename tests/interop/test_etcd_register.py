# SPDX-License-Identifier: BSD-3-Clause
"""The register of a job in a real etcd: the cases of all registers, members that die, and clients that are not let in."""

import functools
import signal

import pytest

from support.etcd import Etcd, make_certificates, require_etcd, require_other_etcd
from support.registers import FIRST_READ, RACE, READ, WATCH, RegisterCases, Suite

# On a machine that does much else, a race may take its time.
pytestmark = pytest.mark.timeout(900)


@pytest.fixture
def make_etcd(tmp_path):
    require_etcd()
    started = []

    def make(members=1, trust=None, **how):
        place = tmp_path / f"etcd{len(started)}"
        place.mkdir()
        started.append(Etcd(place, members, trust, **how))
        return started[-1]

    yield make
    for etcd in started:
        etcd.end()


@pytest.fixture(params=[None, require_other_etcd], ids=["etcd", "later etcd"])
def make_any_etcd(request, make_etcd):
    """The same, of this system, and of a later Debian as well."""
    how = {"program": request.param()} if request.param else {}
    return functools.partial(make_etcd, **how)


def suite_of(etcd):
    return Suite("etcd", etcd.endpoints)


def conform(etcd, pattern="*", *conf):
    suite_of(etcd).conform(pattern, conf)


def first_failure(etcd, *conf):
    """What the first read is answered with."""
    return suite_of(etcd).conform(FIRST_READ, conf)


def text(number, value):
    return bytes([number << 3 | 2, len(value)]) + value.encode()


def make_users(etcd, **roles_of):
    """Each user has the password "secret" and one role; root may do everything. From now on nobody else is let in."""
    for name, role in {"root": "root", **roles_of}.items():
        assert etcd.call(0, "/etcdserverpb.Auth/UserAdd", text(1, name) + text(2, "secret")) == 0
        if role == "root":
            assert etcd.call(0, "/etcdserverpb.Auth/RoleAdd", text(1, role)) == 0
        assert etcd.call(0, "/etcdserverpb.Auth/UserGrantRole", text(1, name) + text(2, role)) == 0
    assert etcd.call(0, "/etcdserverpb.Auth/AuthEnable") == 0


def make_role(etcd, name, first, end, rights=2):
    """2: read and write; 0: read."""
    permission = bytes([8, rights]) + text(2, first) + text(3, end)
    assert etcd.call(0, "/etcdserverpb.Auth/RoleAdd", text(1, name)) == 0
    granted = text(1, name) + bytes([2 << 3 | 2, len(permission)]) + permission
    assert etcd.call(0, "/etcdserverpb.Auth/RoleGrantPermission", granted) == 0


class Served:
    """All members at once."""

    def __init__(self, make_etcd):
        self.make_etcd, self.etcd = make_etcd, make_etcd(3)
        self.suite, self.name = suite_of(self.etcd), "etcd (127.0.0.1:"

    def stop(self):
        for member in range(3):
            self.etcd.kill(member)

    def start(self):
        for member in range(3):
            self.etcd.start(member)

    def stand_still(self):
        for member in range(3):
            self.etcd.signal(member, signal.SIGSTOP)

    def go_on(self):
        for member in range(3):
            self.etcd.signal(member, signal.SIGCONT)

    def forget(self):
        return self.etcd.compact() == 0

    def forbid_writes(self):
        make_role(self.etcd, "of readers", "muster/", "muster0", rights=0)
        make_users(self.etcd, ann="of readers")
        self.suite.conf = ["user=ann", "password=secret"]
        return ["permission denied", "from muster/ up to muster0"]

    def fill(self):
        etcd = self.make_etcd(1, options=["--quota-backend-bytes", "20000"])
        self.suite = suite_of(etcd)
        return ["database space exceeded", "; make room there (etcdctl compact, defrag, alarm disarm)"]


class TestEtcdAsAnyRegister(RegisterCases):
    @pytest.fixture
    def served(self, make_etcd):
        return Served(make_etcd)


def test_one_member_keeps_a_register(make_any_etcd):
    conform(make_any_etcd())


def test_a_watch_goes_on_at_another_member(make_any_etcd):
    """One after the other is killed, until the races of entries and watches are over."""
    etcd = make_any_etcd(3)
    watches = [suite_of(etcd).begin(WATCH) for _ in range(10)]
    for member in range(3):
        etcd.kill(member)
        etcd.start(member)
        etcd.await_member(member)
    for watch in watches:
        suite_of(etcd).finish(watch)


def test_a_watch_does_not_wait_for_a_member_that_stands_still(make_any_etcd):
    """The first one, which is asked first."""
    etcd = make_any_etcd(3)
    etcd.signal(0, signal.SIGSTOP)
    conform(etcd, WATCH)


def test_members_may_die_and_stand_still_during_a_race(make_any_etcd):
    """One after the other: whichever leads is among them, and two are always there."""
    etcd = make_any_etcd(3)
    race = suite_of(etcd).begin(RACE)
    for member in range(3):
        etcd.kill(member)
        etcd.start(member)
        etcd.await_member(member)
        etcd.signal(member, signal.SIGSTOP)
        etcd.await_member((member + 1) % 3)
        etcd.signal(member, signal.SIGCONT)
        etcd.await_member(member)
    suite_of(etcd).finish(race)


def test_members_with_tls_want_the_right_certificates(make_etcd, tmp_path):
    make_certificates(tmp_path)
    etcd = make_etcd(1, trust=tmp_path)
    ca, certificate = f"ca_cert={tmp_path}/ca.pem", f"ssl_cert={tmp_path}/client.pem"
    key = f"ssl_cert_key={tmp_path}/client.key"
    conform(etcd, READ, "protocol=https", ca, certificate, key)
    conform(etcd, RACE, "protocol=https", f"cacert={tmp_path}/ca.pem", f"cert={tmp_path}/client.pem", f"key={tmp_path}/client.key")
    strange = first_failure(etcd, "protocol=https", f"ca_cert={tmp_path}/other.pem", certificate, key)
    assert etcd.endpoints in strange and "certificate" in strange and "final" in strange, strange
    stranger = first_failure(etcd, "protocol=https", ca, f"ssl_cert={tmp_path}/stranger.pem", f"ssl_cert_key={tmp_path}/stranger.key")
    assert etcd.endpoints in stranger, stranger
    plain = first_failure(etcd)
    assert etcd.endpoints in plain and "protocol=https" in plain, plain


def test_tls_to_members_without_it_is_refused(make_etcd):
    etcd = make_etcd()
    refused = first_failure(etcd, "protocol=https")
    assert etcd.endpoints in refused, refused
    # What the kernel tells first is a race. A connection that was only cut may be a server that starts.
    assert any(words in refused for words in ("final", "speaks no TLS at this port", "reset by peer")), refused


def test_users_need_their_password(make_any_etcd):
    etcd = make_any_etcd()
    make_users(etcd)
    conform(etcd, READ, "user=root", "password=secret")
    wrong = first_failure(etcd, "user=root", "password=wrong")
    assert "final" in wrong and "authentication failed" in wrong and "look at user and password in --rdzv-conf" in wrong, wrong
    nobody = first_failure(etcd)
    assert "final" in nobody and "user name is empty" in nobody and "give user and password" in nobody, nobody


def test_users_need_a_role_for_the_keys(make_any_etcd, tmp_path):
    etcd = make_any_etcd()
    make_role(etcd, "of muster", "muster/", "muster0")
    make_role(etcd, "of others", "other/", "other0")
    unused = first_failure(etcd, "user=ann", "password=secret")
    assert "final" in unused and "leave user out of --rdzv-conf" in unused, unused
    make_users(etcd, ann="of muster", ben="of others")
    (tmp_path / "password").write_text("secret\n", encoding="utf-8")
    conform(etcd, READ, "user=ann", f"password_file={tmp_path}/password")
    refused = first_failure(etcd, "user=ben", "password=secret")
    assert "final" in refused and "permission denied" in refused and "from muster/ up to muster0" in refused, refused
    assert "secret" not in refused, refused
