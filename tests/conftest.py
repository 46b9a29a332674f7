"""What tests of several rooms share: real runs, played in processes of their own."""

import json
import os
import subprocess
import sys

import hypothesis
import pytest

SLOW = [hypothesis.HealthCheck.too_slow]
"""What a busy machine is, which is nobody's fault."""
hypothesis.settings.register_profile("same", derandomize=True, deadline=None, suppress_health_check=SLOW)
hypothesis.settings.register_profile("explore", deadline=None, suppress_health_check=SLOW)
hypothesis.settings.load_profile("same")
pytest_plugins = [
    "tests.support.campaigns",
    "tests.support.cycles",
    "tests.support.order",
    "tests.support.timeouts",
]


@pytest.fixture(scope="session")
def play_for_real(tmp_path_factory):
    """`play_for_real(specs)`: {name: spec} → {name: {"report": …, "trace": […]}}, real processes on loopback.

    In a process of its own, because runs fork their devices from a parent that has computed nothing. It and
    its references serve all tests.
    """
    cache = tmp_path_factory.mktemp("references")
    players = []

    def play(specs):
        folder = tmp_path_factory.mktemp("runs")
        players.extend([] if players else [_start(cache)])
        return {
            name: _answer(players[0], folder / f"{number}.json", spec)
            for number, (name, spec) in enumerate(specs.items())
        }

    yield play
    for player in players:
        player.stdin.close()
        player.wait()
        player.stdout.close()


def _start(cache):
    play = "import sys; from engine.runs.local import main; main(line.strip() for line in sys.stdin)"
    return subprocess.Popen(
        [sys.executable, "-uc", play],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"XDG_CACHE_HOME": str(cache), "OMP_NUM_THREADS": "1"},
    )


def _answer(player, path, spec):
    path.write_text(spec.model_dump_json())
    player.stdin.write(f"{path}\n")
    player.stdin.flush()
    line = player.stdout.readline()
    assert line, f"the process that played {path} broke off"
    return json.loads(line)
