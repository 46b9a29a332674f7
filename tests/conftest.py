"""What tests of several rooms share: real runs, played in processes of their own."""

import json
import os
import subprocess
import sys

import hypothesis
import pytest

hypothesis.settings.register_profile("same", derandomize=True, deadline=None)
hypothesis.settings.register_profile("explore", deadline=None)
hypothesis.settings.load_profile("same")
pytest_plugins = ["tests.support.campaigns", "tests.support.timeouts"]


@pytest.fixture(scope="session")
def play_for_real(tmp_path_factory):
    """`play_for_real(specs)`: {name: spec} → {name: {"report": …, "trace": […]}}, real processes on loopback.

    In fresh processes, because runs fork their devices from a parent that has computed nothing; in
    `at_once` of them, where what is asked does not depend on how long it takes. References are computed once
    for all tests.
    """
    cache = tmp_path_factory.mktemp("references")

    def play(specs, at_once=1):
        folder = tmp_path_factory.mktemp("runs")
        paths = {name: folder / f"{number}.json" for number, name in enumerate(specs)}
        for name, path in paths.items():
            path.write_text(specs[name].model_dump_json())
        shares = [list(paths)[first::at_once] for first in range(at_once)]
        playing = [
            _start(folder / f"out-{number}", [paths[name] for name in names], cache)
            for number, names in enumerate(shares)
            if names
        ]
        answers = {}
        for names, (process, out) in zip(shares, playing, strict=False):
            assert process.wait() == 0, f"the runs of {', '.join(names)} broke off"
            with out.open() as lines:
                answers |= dict(zip(names, map(json.loads, lines), strict=True))
        return answers

    return play


def _start(out, paths, cache):
    with out.open("w") as lines:
        process = subprocess.Popen(
            [sys.executable, "-m", "engine.runs.local", *map(str, paths)],
            stdout=lines,
            env=os.environ | {"EDGELOOM_CACHE": str(cache), "OMP_NUM_THREADS": "1"},
        )
    return process, out
