"""The pool of device processes, with processes that the test plays."""

import pytest

from tests.support.fake_devices import FakeClock, FakePool, active_run, running_pool


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def pool(clock):
    pool = running_pool(clock, active_run(clock))
    yield pool
    pool.close(at_once=True)


def test_messages_come_with_the_device_that_sent_them(pool, clock):
    clock.now_s = 123.0
    pool.devices[1].report(type="ready", n=1)
    pool.devices[1].report(type="ready", n=2)
    found = pool.read(1.0)
    assert [(child.rank, message["n"]) for child, message in found] == [(1, 1), (1, 2)]
    assert pool.children[1].last_message_s == 123.0
    assert pool.children[0].last_message_s == 100.0


def test_half_a_message_waits_for_its_other_half(pool):
    pool.devices[0].sock.sendall(b'{"type": "rea')
    assert pool.read(1.0) == []
    pool.devices[0].sock.sendall(b'dy"}\n')
    assert [message for _, message in pool.read(1.0)] == [{"type": "ready"}]


def test_a_process_that_ends_is_reported_once_and_leaves_the_pool(pool):
    child = pool.children[2]
    pool.devices[2].sock.close()
    assert pool.read(1.0) == [(child, None)]
    assert pool.children.keys() == {0, 1}
    assert pool.read(0.0) == []
    child.send(type="start")  # ignored


def test_pairs_connect_both_ways_and_no_pair_connects_twice(pool):
    for rank in range(3):
        pool.children[rank].port = 5000 + rank
    pool.connect(frozenset({(0, 1)}), type="connect", more=7)
    (to_0,), (to_1,), (to_2,) = (pool.got(rank) for rank in range(3))
    assert to_0 == {
        "type": "connect",
        "more": 7,
        "addresses": [[0, "10.0.0.0", 5000], [1, "10.0.0.1", 5001], [2, "10.0.0.2", 5002]],
        "peers": [1],
        "expect": 1,
    }
    assert (to_1["peers"], to_1["expect"]) == ([0], 1)
    assert (to_2["peers"], to_2["expect"]) == ([], 0)
    pool.connect(frozenset({(0, 1), (2, 0)}), type="resume")
    (to_0,), (to_1,), (to_2,) = (pool.got(rank) for rank in range(3))
    assert (to_0["peers"], to_0["expect"]) == ([2], 2)  # the connection to 1 is open
    assert (to_1["peers"], to_1["expect"]) == ([], 1)
    assert (to_2["peers"], to_2["expect"]) == ([0], 1)


def test_a_device_that_comes_back_is_connected_again(pool, clock):
    pool.connect(frozenset({(0, 1)}), type="connect")
    pool.devices[1].sock.close()
    pool.read(1.0)
    pool.got(0)
    pool.fork(1, active_run(clock).plan)
    pool.connect(frozenset({(0, 1)}), type="resume")
    assert pool.got(0)[0]["peers"] == [1]
    assert pool.got(1)[0]["peers"] == [0]


def test_devices_that_are_not_there_are_not_connected(pool):
    pool.connect(frozenset({(0, 7)}), type="connect")
    assert (pool.got(0)[0]["peers"], pool.children.keys()) == ([], {0, 1, 2})


def test_all_start_at_the_same_time(pool):
    pool.start(100.0, 4.0, 101.5)
    for rank in range(3):
        assert pool.got(rank) == [{"type": "start", "start_s": 100.0, "dilation": 4.0, "begin_s": 101.5}]
    assert pool.with_state("running") == {0, 1, 2}


def test_an_older_report_of_halted_does_not_count(pool):
    pool.children[0].state = "halted"
    pool.halt()
    assert pool.with_state("halted") == set()
    assert pool.got(0) == [{"type": "halt"}]


def test_devices_are_found_by_what_they_reported(pool):
    pool.children[1].state = "stuck"
    assert pool.with_state("stuck") == {1}
    assert pool.with_state("stuck", [0, 2]) == set()
    assert pool.with_state("running", [0, 9]) == {0}


def test_an_empty_device_gets_no_weights(clock):
    run = active_run(clock)
    pool = FakePool(clock)
    assert run.plan.held_by(1)
    pool.fork_empty(1, run.plan, [])
    assert not pool.plans[1].held_by(1)
    assert pool.plans[1].held_by(0) == run.plan.held_by(0)
    pool.close(at_once=True)


def test_a_ping_is_remembered_with_its_time(pool, clock):
    clock.now_s = 150.0
    pool.ping(pool.children[1])
    assert pool.got(1) == [{"type": "ping"}]
    assert pool.children[1].last_ping_s == 150.0
