"""What tests of several rooms share: a database, and real runs, played in processes of their own."""

import json
import os
import subprocess
import sys

import hypothesis
import pytest
from django.db import connections

SLOW = [hypothesis.HealthCheck.too_slow]
"""What a busy machine is, which is nobody's fault."""
hypothesis.settings.register_profile("same", derandomize=True, deadline=None, suppress_health_check=SLOW)
hypothesis.settings.register_profile("explore", deadline=None, suppress_health_check=SLOW)
hypothesis.settings.load_profile("same")
pytest_plugins = [
    "tests.support.campaigns",
    "tests.support.cycles",
    "tests.support.overhead",
    "tests.support.order",
    "tests.support.timeouts",
]


@pytest.fixture(scope="session")
def django_db_modify_db_settings(tmp_path_factory):
    """A file instead of SQLite's memory: worker processes open it too. What it has need not outlive a loss of
    power, so nothing waits for the disk.
    """
    database = connections.databases["default"]
    if database["ENGINE"].endswith("sqlite3"):
        name = tmp_path_factory.mktemp("database") / "test.sqlite3"
        connections["default"].settings_dict["TEST"]["NAME"] = str(name)
        connections["default"].settings_dict["OPTIONS"]["init_command"] += "PRAGMA synchronous=OFF;"


@pytest.fixture(scope="session")
def ask_player(tmp_path_factory):
    """`ask_player(**asked)`: the answer of `tests.support.player`.

    A process of its own, because runs fork their devices from a parent that has computed nothing. It and its
    references serve all tests.
    """
    cache = tmp_path_factory.mktemp("references")
    players = []

    def ask(**asked):
        players.extend([] if players else [_start(cache)])
        try:
            players[0].stdin.write(f"{json.dumps(asked)}\n")
            players[0].stdin.flush()
            line = players[0].stdout.readline()
        except BaseException:  # of a test that took too long: the next one must not get its answer
            with players.pop() as late:
                late.kill()
            raise
        assert line, f"the process that played {asked} broke off"
        return json.loads(line)

    yield ask
    for player in players:
        player.stdin.close()
        player.wait()
        player.stdout.close()


@pytest.fixture(scope="session")
def play_for_real(tmp_path_factory, ask_player):
    """`play_for_real(specs)`: {name: spec} → {name: {"report": …, "trace": […]}}, real processes on
    loopback.
    """

    def play(specs):
        folder = tmp_path_factory.mktemp("runs")
        played = {}
        for number, (name, spec) in enumerate(specs.items()):
            path = folder / f"{number}.json"
            path.write_text(spec.model_dump_json())
            played[name] = ask_player(spec=str(path))
        return played

    return play


@pytest.fixture(scope="session")
def in_a_copy(ask_player):
    """`in_a_copy(module, *arguments)`: `main` of a module of tests/support is called in a copy of the player,
    for runs that a test disturbs.
    """

    def call(module, *arguments):
        asked = {"module": f"tests.support.{module}", "arguments": [str(given) for given in arguments]}
        assert ask_player(**asked) == 0

    return call


def _start(cache):
    return subprocess.Popen(
        [sys.executable, "-um", "tests.support.player"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"XDG_CACHE_HOME": str(cache), "OMP_NUM_THREADS": "1"},
    )
