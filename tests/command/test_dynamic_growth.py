# SPDX-License-Identifier: BSD-3-Clause
"""Nodes that come when a job is already running, or when it is full."""

import random
import re
import time

from support.nodes import wait_until


def test_a_node_that_comes_later_is_admitted(make_job_anywhere):
    job = make_job_anywhere("1:2")
    job.start("node1")
    first = job.wait_for_world("node1")
    job.start("node2")
    second = job.wait_for_world("node1", "node2")
    assert not first.of("node1").is_running()
    assert second.restarts == {0}
    second.end()
    assert job.succeeds()


def test_a_node_that_comes_later_may_be_of_the_lowest_rank(make_job):
    job = make_job("1:2")
    job.start("node2")
    job.wait_for_world("node2")
    job.start("node1")
    world = job.wait_for_world("node1", "node2")
    assert world.nodes == ["node1", "node2"]
    world.end()
    assert job.succeeds()


def test_nobody_is_admitted_where_the_job_shall_not_grow(make_job):
    job = make_job("1:2", "--scale-up", "never")
    job.start_host()
    world = job.wait_for_world("node1")
    late = job.start("node2")
    late.wait_for_log("written won")  # that it waits
    world.end()
    assert job.succeeds()
    assert job.is_newest(world)


def test_a_lost_node_is_replaced_where_the_job_shall_not_grow(make_job):
    job = make_job("1:3", "--scale-up", "never")
    job.start_host()
    lost = job.start("node2")
    job.wait_for_world("node1", "node2")
    job.start("node3").wait_for_log("wait [node3")
    lost.kill()
    job.wait_for_world("node1", "node3").end()
    assert job.succeeds()


def test_a_world_lasts_as_long_as_it_shall_before_it_grows(make_job):
    job = make_job("1:2", "--scale-up", "3")
    began = time.monotonic()
    job.start_host()
    job.wait_for_world("node1")
    job.start("node2")
    world = job.wait_for_world("node1", "node2")
    assert time.monotonic() - began > 3
    world.end()
    assert job.succeeds()


def test_nodes_beyond_the_maximum_are_parked_and_end_well(make_job):
    job = make_job("1:2")
    job.start_host()
    job.start("node2")
    world = job.wait_for_world("node1", "node2")
    spares = job.nodes("node3", "node4")
    for spare in spares:
        spare.wait_for_log(f"{spare.name}_{spare.pid}")
        spare.wait_for_log("rendezvous <- written won")
    assert all(worker.is_running() for worker in world.workers)
    world.end()
    assert job.succeeds()
    assert job.is_newest(world)


def test_a_spare_takes_the_place_of_a_lost_node(make_job):
    job = make_job("2:2")
    job.start_host()
    lost = job.start("node2")
    job.wait_for_world("node1", "node2")
    spare = job.start("node3")
    spare.wait_for_log("rendezvous <- written won")
    lost.kill()
    job.wait_for_world("node1", "node3").end()
    assert job.succeeds()


def test_nodes_that_come_at_random_times_all_end_well(make_job):
    order = random.Random(7)
    job = make_job("2:6")
    names = [f"node{number}" for number in range(1, 9)]
    order.shuffle(names)
    for name in names:
        job.start(name)
        time.sleep(order.uniform(0, 0.3))
    world = job.wait_for_largest_world(6)
    wait_until(lambda: all("rendezvous <- written won" in node.err() for node in job.started), "all to be in the record")
    world.end()
    assert job.succeeds()


def test_a_node_that_comes_and_dies_again_and_again_does_not_keep_the_others_from_ending(make_job):
    job = make_job("2:3")
    job.start_host()
    job.start("node2")
    world = job.wait_for_world("node1", "node2")
    for number in range(3):
        troublemaker = job.start(f"trouble{number}")
        job.wait_for_world("node1", "node2", troublemaker.name)
        troublemaker.kill()
        world = job.wait_for_world("node1", "node2")
    world.end()
    assert job.succeeds()


def test_a_node_that_comes_and_dies_before_it_is_admitted_disturbs_nobody(make_job):
    job = make_job("2:3", "--scale-up", "60")
    host = job.start_host()
    job.start("node2")
    world = job.wait_for_world("node1", "node2")
    for number in range(5):
        troublemaker = job.start(f"trouble{number}")
        host.wait_for_log(f"wait [{troublemaker.name}")
        troublemaker.kill()
        host.wait_for_log(f"node_gone {troublemaker.name}")
    assert all(worker.is_running() for worker in world.workers)
    world.end()
    assert job.succeeds()
    assert job.is_newest(world)


def test_a_node_that_waits_for_its_admission_is_told_why_and_for_how_long(make_job):
    job = make_job("1:2", "--scale-up", "100")
    host = job.start_host("node1")
    job.wait_for_world("node1")
    newcomer = job.start("node2")
    newcomer.wait_for_log("node1 (join_timeout: 600 s); the next are let in in ")
    assert re.search(r"let in in \d+ s, as --scale-up says", newcomer.err()), newcomer.err()
    assert re.search(r"^I.*a node waits for a place in the world: the next are let in in \d+ s", host.err(), re.M)
