"""What tests of several rooms share: real runs, played in processes of their own."""

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import hypothesis
import pytest

SLOW = [hypothesis.HealthCheck.too_slow]
"""What a busy machine is, which is nobody's fault."""
hypothesis.settings.register_profile("same", derandomize=True, deadline=None, suppress_health_check=SLOW)
hypothesis.settings.register_profile("explore", deadline=None, suppress_health_check=SLOW)
hypothesis.settings.load_profile("same")
pytest_plugins = ["tests.support.campaigns", "tests.support.order", "tests.support.timeouts"]


@pytest.fixture(scope="session")
def play_for_real(tmp_path_factory):
    """`play_for_real(specs)`: {name: spec} → {name: {"report": …, "trace": […]}}, real processes on loopback.

    In processes of their own, because runs fork their devices from a parent that has computed nothing; in
    `at_once` of them, where what is asked does not depend on how long it takes. They and the references serve
    all tests.
    """
    cache = tmp_path_factory.mktemp("references")
    players = []

    def play(specs, at_once=1):
        folder = tmp_path_factory.mktemp("runs")
        paths = {name: folder / f"{number}.json" for number, name in enumerate(specs)}
        for name, path in paths.items():
            path.write_text(specs[name].model_dump_json())
        while len(players) < at_once:
            players.append(_start(cache))
        shares = [list(paths)[first::at_once] for first in range(at_once)]
        with ThreadPoolExecutor(at_once) as pool:
            asked = zip(players, shares, strict=False)
            played = [
                pool.submit(_answers, player, [paths[name] for name in names]) for player, names in asked
            ]
        return {
            name: answer
            for names, answers in zip(shares, played, strict=True)
            for name, answer in zip(names, answers.result(), strict=True)
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


def _answers(player, paths):
    answers = []
    for path in paths:
        player.stdin.write(f"{path}\n")
        player.stdin.flush()
        line = player.stdout.readline()
        assert line, f"the process that played {path} broke off"
        answers.append(json.loads(line))
    return answers
