# SPDX-License-Identifier: BSD-3-Clause
"""The register of a job in a real etcd: the whole conformance suite, members that die, and clients that are not let in."""

import functools
import os
import pathlib
import signal
import subprocess

import pytest

from support.binary import ROOT
from support.etcd import Etcd, make_certificates, require_etcd, require_other_etcd

CONFORMANCE = pathlib.Path(os.environ.get("MUSTER_BUILD", ROOT / "build")) / "tests/register_conformance"
# On a machine that does much else, a race may take its time.
pytestmark = pytest.mark.timeout(900)

RACE = "each_number_has_one_winner_though_replies_are_lost"
READ = "reader_sees_a_chain_that_only_grows"


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


def begin(endpoints, pattern="*", *conf):
    command = [CONFORMANCE, "etcd", endpoints, pattern, *conf]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def finish(running):
    output, _ = running.communicate(timeout=400)
    return running.returncode, output


def conform(endpoints, pattern="*", *conf):
    status, output = finish(begin(endpoints, pattern, *conf))
    assert status == 0, output


def first_failure(endpoints, *conf):
    """What the first read is answered with."""
    status, output = finish(begin(endpoints, "first_read_says_why_it_fails", *conf))
    assert status == 0, output
    return output


@pytest.mark.parametrize("members", [1, 3])
def test_etcd_keeps_a_register(make_any_etcd, members):
    conform(make_any_etcd(members).endpoints)


WATCH = "a_watch_tells_of_the_entry_after_the_one_known"


def test_a_watch_does_not_care_what_etcd_keeps_of_changes(make_any_etcd):
    etcd = make_any_etcd()
    watch = begin(etcd.endpoints, WATCH)
    compactions = []
    while watch.poll() is None:
        compactions.append(etcd.compact())
    assert 0 in compactions
    status, output = finish(watch)
    assert status == 0, output


def test_a_watch_goes_on_at_another_member(make_any_etcd):
    """One after the other is killed, until the races of entries and watches are over."""
    etcd = make_any_etcd(3)
    watches = [begin(etcd.endpoints, WATCH) for _ in range(10)]
    for member in range(3):
        etcd.kill(member)
        etcd.start(member)
        etcd.await_member(member)
    for watch in watches:
        status, output = finish(watch)
        assert status == 0, output


def test_a_watch_does_not_wait_for_a_member_that_stands_still(make_any_etcd):
    """The first one, which is asked first."""
    etcd = make_any_etcd(3)
    etcd.signal(0, signal.SIGSTOP)
    conform(etcd.endpoints, WATCH)


def test_members_may_die_and_stand_still_during_a_race(make_any_etcd):
    """One after the other: whichever leads is among them, and two are always there."""
    etcd = make_any_etcd(3)
    race = begin(etcd.endpoints, RACE)
    for member in range(3):
        etcd.kill(member)
        etcd.start(member)
        etcd.await_member(member)
        etcd.signal(member, signal.SIGSTOP)
        etcd.await_member((member + 1) % 3)
        etcd.signal(member, signal.SIGCONT)
        etcd.await_member(member)
    status, output = finish(race)
    assert status == 0, output


def test_all_members_may_be_away_for_a_while(make_etcd):
    etcd = make_etcd(3)
    races = [begin(etcd.endpoints, RACE)]
    for member in range(3):
        etcd.kill(member)
    races.append(begin(etcd.endpoints, RACE))
    for member in range(3):
        etcd.start(member)
    for race in races:
        status, output = finish(race)
        assert status == 0, output


def test_members_with_tls_want_the_right_certificates(make_etcd, tmp_path):
    make_certificates(tmp_path)
    etcd = make_etcd(1, trust=tmp_path)
    ca, certificate = f"ca_cert={tmp_path}/ca.pem", f"ssl_cert={tmp_path}/client.pem"
    key = f"ssl_cert_key={tmp_path}/client.key"
    conform(etcd.endpoints, READ, "protocol=https", ca, certificate, key)
    conform(etcd.endpoints, RACE, "protocol=https", f"cacert={tmp_path}/ca.pem", f"cert={tmp_path}/client.pem", f"key={tmp_path}/client.key")
    strange = first_failure(etcd.endpoints, "protocol=https", f"ca_cert={tmp_path}/other.pem", certificate, key)
    assert etcd.endpoints in strange and "certificate" in strange and "final" in strange, strange
    stranger = first_failure(etcd.endpoints, "protocol=https", ca, f"ssl_cert={tmp_path}/stranger.pem", f"ssl_cert_key={tmp_path}/stranger.key")
    assert etcd.endpoints in stranger, stranger
    plain = first_failure(etcd.endpoints)
    assert etcd.endpoints in plain and "protocol=https" in plain, plain


def test_tls_to_members_without_it_is_refused(make_etcd):
    etcd = make_etcd()
    refused = first_failure(etcd.endpoints, "protocol=https")
    assert etcd.endpoints in refused, refused
    # What the kernel tells first is a race. A connection that was only cut may be a server that starts.
    assert any(words in refused for words in ("final", "speaks no TLS at this port", "reset by peer")), refused


def test_users_need_their_password(make_any_etcd):
    etcd = make_any_etcd()

    def text(number, value):
        return bytes([number << 3 | 2, len(value)]) + value.encode()

    assert etcd.call(0, "/etcdserverpb.Auth/UserAdd", text(1, "root") + text(2, "secret")) == 0
    assert etcd.call(0, "/etcdserverpb.Auth/RoleAdd", text(1, "root")) == 0
    assert etcd.call(0, "/etcdserverpb.Auth/UserGrantRole", text(1, "root") + text(2, "root")) == 0
    assert etcd.call(0, "/etcdserverpb.Auth/AuthEnable") == 0
    conform(etcd.endpoints, READ, "user=root", "password=secret")
    wrong = first_failure(etcd.endpoints, "user=root", "password=wrong")
    assert "final" in wrong and "authentication failed" in wrong and "look at user and password in --rdzv-conf" in wrong, wrong
    nobody = first_failure(etcd.endpoints)
    assert "final" in nobody and "user name is empty" in nobody and "give user and password" in nobody, nobody


def test_users_need_a_role_for_the_keys(make_any_etcd, tmp_path):
    etcd = make_any_etcd()

    def text(number, value):
        return bytes([number << 3 | 2, len(value)]) + value.encode()

    def permit(role, first, end):
        permission = b"\x08\x02" + text(2, first) + text(3, end)  # read and write
        assert etcd.call(0, "/etcdserverpb.Auth/RoleAdd", text(1, role)) == 0
        granted = text(1, role) + bytes([2 << 3 | 2, len(permission)]) + permission
        assert etcd.call(0, "/etcdserverpb.Auth/RoleGrantPermission", granted) == 0

    permit("of muster", "muster/", "muster0")
    permit("of others", "other/", "other0")
    assert etcd.call(0, "/etcdserverpb.Auth/RoleAdd", text(1, "root")) == 0
    for user, role in (("root", "root"), ("ann", "of muster"), ("ben", "of others")):
        assert etcd.call(0, "/etcdserverpb.Auth/UserAdd", text(1, user) + text(2, "secret")) == 0
        assert etcd.call(0, "/etcdserverpb.Auth/UserGrantRole", text(1, user) + text(2, role)) == 0
    unused = first_failure(etcd.endpoints, "user=ann", "password=secret")
    assert "final" in unused and "leave user out of --rdzv-conf" in unused, unused
    assert etcd.call(0, "/etcdserverpb.Auth/AuthEnable") == 0
    (tmp_path / "password").write_text("secret\n", encoding="utf-8")
    conform(etcd.endpoints, READ, "user=ann", f"password_file={tmp_path}/password")
    refused = first_failure(etcd.endpoints, "user=ben", "password=secret")
    assert "final" in refused and "permission denied" in refused and "from muster/ up to muster0" in refused, refused
    assert "secret" not in refused, refused


def test_members_that_are_not_there_are_named():
    require_etcd()
    told = first_failure("127.0.0.1:1")
    assert "etcd (127.0.0.1:1): " in told and "final" not in told, told
