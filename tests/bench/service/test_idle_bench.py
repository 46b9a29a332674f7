"""What an idle service costs: the sums, and that shared pages are told apart from private ones."""

from __future__ import annotations

import os
import subprocess
import sys

from bench.service.idle import Usage, family, name_of, table, usages


def test_a_process_that_begins_or_ends_meanwhile_is_not_counted() -> None:
    before = {1: Usage("web", 80_000_000, 100_000_000, 3.0), 2: Usage("gone", 1, 1, 1.0)}
    after = {1: Usage("web", 90_000_000, 110_000_000, 4.5), 3: Usage("new", 1, 1, 9.0)}
    rows = table(before, after, measured_s=300.0).rows
    assert rows[0] == ("web", "90 MB", "110 MB", "0.50%")
    assert rows[1] == ("1 processes", "90 MB", "110 MB", "0.50%")
    assert rows[2] == ("asked", "at most 500 MB", "", "at most 1%")


def test_a_worker_is_called_by_its_queue() -> None:
    assert (
        name_of(["python", "-m", "celery", "-A", "webapp.celery", "worker", "-Q", "plan"]) == "worker, plan"
    )
    assert name_of(["python", "-m", "webapp.http.server", "webapp.asgi"]) == "webapp.http.server"
    assert name_of(["/usr/bin/redis-server", ""]) == "redis-server"


def test_children_of_children_belong_to_the_family_and_a_fork_shares_its_memory() -> None:
    program = "import os; data = bytearray(40_000_000); os.fork(); print(flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        parent.stdout.readline()
        parent.stdout.readline()
        both = list(usages(parent.pid).values())
        mine = list(family(os.getpid()))
        parent.communicate("\n\n")
    assert len(both) == 2 and parent.pid in mine
    assert all(one.resident_bytes > 40_000_000 for one in both)
    assert 40_000_000 < sum(one.shared_bytes for one in both) < 75_000_000


def test_a_process_that_has_ended_and_was_not_waited_for_has_no_usage() -> None:
    with subprocess.Popen(["true"]) as ended:
        os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
        assert usages(ended.pid) == {}
