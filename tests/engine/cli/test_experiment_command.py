"""`loom experiment` as a person uses it: run, stopped, gone on, shown, written."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import topologies
from engine.cli import main
from engine.cli.command import Environment
from engine.cli.commands import COMMANDS
from engine.cli.experiment_progress import PointsProgress
from engine.domain.report import RunReport
from engine.domain.spec import RunSpec
from engine.experiments.design.expand import expand
from engine.experiments.design.shipped_files import load, shipped_names
from engine.experiments.design.sources import Sources
from engine.experiments.execution.campaign import Task
from engine.experiments.execution.point import Emulation
from engine.experiments.results.rows import Result
from engine.runs.predict import predict

ROOT = Path(__file__).parents[3]
EXPERIMENT = """
name = "two-methods"
{more}
[base]
cluster = "lab-3"
model = "tiny-gpt2"
weights = "random"
workload = {{ prompt_tokens = 4, new_tokens = 2 }}

[[factor]]
name = "method"
path = "strategy"
values = [{values}]

[[table]]
name = "times"
rows = ["method"]
metric = "latency_s"
"""


def emulated(spec: RunSpec) -> RunReport:
    return predict(spec).model_copy(update={"world": "emulated"})


def run(
    capsys: pytest.CaptureFixture[str], *argv: object, with_emulator: bool = False
) -> tuple[int, str, str]:
    emulation = (lambda: Emulation(emulated, "e1")) if with_emulator else None
    environment = Environment(topologies.load, topologies.names, topologies.presets, emulation=emulation)
    status = main(["experiment", *(str(part) for part in argv)], COMMANDS, environment)
    return status, *capsys.readouterr()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return written(tmp_path)


def written(folder: Path, more: str = "", values: str = '"single", "megatron"') -> Path:
    path = folder / "two-methods.toml"
    path.write_text(EXPERIMENT.format(more=more, values=values))
    return path


def test_points_are_predicted_once_shown_and_written(file: Path, tmp_path: Path, capsys: Any) -> None:
    output = ("--output", tmp_path / "out")
    status, shown, progress = run(capsys, "predict", file, *output, "--jobs", 1)
    assert status == 0 and "2 of 2 predicted finished" in shown
    assert "2 of 2 points" in progress
    status, _, progress = run(capsys, "predict", file, *output)
    assert (status, progress) == (0, "")
    status, listed, _ = run(capsys, "report", file, *output)
    assert status == 0 and str(tmp_path / "out/two-methods/report.html") in listed
    rows = json.loads((tmp_path / "out/two-methods/points.json").read_text())["rows"]
    assert [row["outcome"] for row in rows] == ["finished", "finished"]


def test_what_the_best_plan_would_give_a_papers_rule_is_said(tmp_path: Path, capsys: Any) -> None:
    output = ("--output", tmp_path / "out", "--jobs", 1)
    _, shown, _ = run(capsys, "predict", written(tmp_path, values='"single", "voltage"'), *output)
    assert re.search(r"With planner=best, by prediction: voltage [\d.]+ times as fast\.", shown)
    _, shown, _ = run(capsys, "predict", written(tmp_path), *output)
    assert "planner=best" not in shown


def test_an_added_value_costs_one_point_and_another_experiment_none(tmp_path: Path, capsys: Any) -> None:
    output = ("--output", tmp_path / "out", "--jobs", 1)
    run(capsys, "predict", written(tmp_path), *output)
    grown = written(tmp_path, values='"single", "megatron", "gpipe"')
    _, shown, progress = run(capsys, "predict", grown, *output)
    assert "3 of 3 predicted finished" in shown and progress.count("points") == 1
    lines = [line for path in (tmp_path / "out/points").iterdir() for line in path.read_text().splitlines()]
    assert len(lines) == 3


def test_emulated_points_are_carried_out_by_whoever_can(tmp_path: Path, capsys: Any) -> None:
    both = written(tmp_path, more='worlds = ["predicted", "emulated"]')
    output = ("--output", tmp_path / "out", "--jobs", 1)
    status, _, refusal = run(capsys, "run", both, *output)
    assert status == 2 and "cannot emulate" in refusal  # and the predictions are kept
    status, shown, progress = run(capsys, "run", both, *output, with_emulator=True)
    assert status == 0 and "2 of 2 predicted, 2 of 2 emulated finished" in shown
    assert progress.startswith("3 of 4 points")


def test_a_point_without_a_plan_is_shown_with_its_reason(tmp_path: Path, capsys: Any) -> None:
    file = written(tmp_path, values='"single", {label = "no", value = "no", set = {strategy = "magic"}}')
    status, shown, _ = run(capsys, "predict", file, "--output", tmp_path / "out", "--jobs", 1)
    assert status == 0 and "1 of 2 predicted finished" in shown
    assert "refused" in shown and "strategy is magic" in shown


def test_a_plan_by_hand_is_a_value_of_a_factor_written_out_or_in_a_file(tmp_path: Path, capsys: Any) -> None:
    """tiny-gpt2 has two layers: both on desk are what `single` does, and three of them are no division."""
    plan = tmp_path / "plan.json"
    plan.write_text('{"devices": [{"device": "desk", "layers": 2}]}')
    by_hand = '{{label = "{label}", set = {{strategy = "gpipe", "params.plan" = {plan}}}}}'
    values = [
        '{label = "alone", set = {strategy = "single", "params.plan" = '
        '{devices = [{device = "desk", layers = 2}]}}}',
        by_hand.format(label="written", plan='{devices = [{device = "desk", layers = 2}]}'),
        by_hand.format(label="in a file", plan=f'"{plan}"'),
        by_hand.format(label="too many", plan='{devices = [{device = "desk", layers = 3}]}'),
        by_hand.format(label="nowhere", plan='"no-such-plan.json"'),
    ]
    file = written(tmp_path, values=", ".join(values))
    file.write_text(file.read_text().replace('path = "strategy"\n', ""))
    status, shown, _ = run(capsys, "predict", file, "--output", tmp_path / "out", "--jobs", 1)
    assert status == 0 and "3 of 5 predicted finished" in shown
    times = [line.split()[-1] for line in shown.splitlines() if re.match(" (alone|written|in a file) ", line)]
    assert len(times) == 3 and len(set(times)) == 1
    words = " ".join(shown.split())
    assert "divides 3 layers, and tiny-gpt2 has 2" in words
    assert "params.plan no-such-plan.json: cannot be read: No such file" in words


def test_an_experiment_file_names_recorded_rates_requests_and_prompts(tmp_path: Path, capsys: Any) -> None:
    """At the rate of its file one link is all but down until 4 s."""
    (tmp_path / "day.csv").write_text("at_s,prompt_tokens,new_tokens\n0,4,1\n0.1,4,3\n")
    (tmp_path / "ask.jsonl").write_text('{"prompt": "Hello", "new_tokens": 2}\n')
    (tmp_path / "bus.csv").write_text("at_s,bit_per_s\n0,20000\n4,1e9\n")
    link = topologies.load("lab-3").links[0]
    values = [
        f'{{label = "day", value = {{trace = "{tmp_path}/day.csv"}}}}',
        f'{{label = "prompts", value = {{prompts = "{tmp_path}/ask.jsonl"}}}}',
    ]
    file = written(tmp_path, values=", ".join(values))
    text = file.read_text().replace('path = "strategy"', 'path = "workload"')
    scenario = f"{tmp_path}/bus.csv@{link.a}--{link.b},until_s=5"
    text = text.replace(
        "weights = ",
        f'strategy = "megatron"\nparams = {{ planner = "paper" }}\nscenario = "{scenario}"\nweights = ',
    )
    file.write_text(text)
    latencies = []
    for name, without in (("out", ""), ("calm", f'scenario = "{scenario}"\n')):
        file.write_text(text.replace(without, ""))
        output = ("--output", tmp_path / name)
        status, shown, refusal = run(capsys, "predict", file, *output, "--jobs", 1)
        assert status == 0 and "2 of 2 predicted finished" in shown, refusal
        run(capsys, "report", file, *output)
        rows = json.loads((tmp_path / name / "two-methods/points.json").read_text())["rows"]
        latencies.append([row["metrics"]["latency_s"] for row in rows])
    slow, calm = latencies
    assert all(one > 5 * other for one, other in zip(slow, calm, strict=True)), latencies


REFUSED = [
    (
        ("show", "nowhere"),
        "file, or one of experts-by-rate, latency-load, methods-by-rate, scaling, schedulers-by-rate",
    ),
    (("report", "scaling"), "has no results of scaling: run `./loom experiment predict` first"),
    (("predict", "scaling", "--jobs", "0"), "is no whole number of at least 1"),
]


@pytest.mark.parametrize(("argv", "words"), REFUSED)
def test_a_mistake_is_one_sentence(argv: tuple[str, ...], words: str, tmp_path: Path, capsys: Any) -> None:
    status, shown, refusal = run(capsys, *argv, "--output", tmp_path / "out")
    assert (status, shown) == (2, "") and words in refusal and refusal.count("\n") == 1


def test_a_mistake_in_a_file_names_the_file_and_the_table(tmp_path: Path, capsys: Any) -> None:
    file = written(tmp_path, values='"single", "single"')
    status, _, refusal = run(capsys, "show", file)
    assert status == 2
    assert "two-methods.toml, factor[0]: values[1] has the coordinate 'single' of an earlier one." in refusal


RATE = '[[factor]]\nname = "rate"\nunit = "{unit}"\npath = "{path}"\nvalues = {values}\n'
LINKS = "cluster.links[*].bit_per_s"
MANY = str(list(range(1, 5_002)))
BAD_FILES = [
    (
        "",
        RATE.format(unit="bit/s", path="cluster.link[*].bit_per_s", values=[1e6]),
        "the nearest is cluster.li",
    ),
    ("", RATE.format(unit="Mbit/s", path=LINKS, values=[10]), "is in bit/s: write its values in bit/s"),
    ("", RATE.format(unit="bit/s", path=LINKS, values=[]), "factor[1].values: expected at least 1 value"),
    ("", RATE.format(unit="bit/s", path=LINKS, values="[1e6, nan]"), "factor[1].values[1]: nan is no finite"),
    ("", RATE.format(unit="bit/s", path=LINKS, values=MANY), "are 10,002 points, and the limit is 10,000"),
    ("", RATE.format(unit="bit/s", path=LINKS, values=[1e6]) * 2, "factor: rate is there twice"),
    ('zipped = [["method", "method"]]', "", "zipped[0]: method is in two groups or twice in one"),
    ("seeds = []", "", "seeds: expected at least 1 value, got none"),
    ("", '[[published]]\nvalue = 1\nunit = "kg"\n', "published[0]: the unit kg does not fit a value in s"),
]


@pytest.mark.parametrize(("more", "last", "words"), BAD_FILES)
def test_a_bad_file_is_refused_in_one_sentence_before_anything_is_computed(
    more: str, last: str, words: str, tmp_path: Path, capsys: Any
) -> None:
    file = written(tmp_path, more=more)
    file.write_text(file.read_text() + "\n" + last)
    status, shown, refusal = run(capsys, "predict", file, "--output", tmp_path / "out")
    assert (status, shown) == (2, "") and words in refusal
    assert refusal.count("\n") == 1 and not (tmp_path / "out").exists()


WITHOUT_END = """
import os, signal, sys
if __name__ == "__main__":
    from edgeloom.command_line import main
    signal.signal(signal.SIGINT, signal.default_int_handler)  # it may be ignored where the tests were started
    sys.exit(main())
os.kill(os.getpid(), signal.SIGINT)  # this is a process of the pool, which Ctrl-C reaches as early as now
from engine.experiments.execution import point
predict = point.predict
point.predict = lambda spec: signal.pause() if spec.seed >= 20 else predict(spec)
"""


def test_ctrl_c_keeps_what_is_done(tmp_path: Path) -> None:
    """The real command with two processes, stopped at its first progress line. Half of its points never end,
    so that it cannot end before.
    """
    script = tmp_path / "without_end.py"
    script.write_text(WITHOUT_END)
    more = "seeds = [" + ", ".join(str(seed) for seed in range(40)) + "]"
    file = written(tmp_path, more=more)
    command = [sys.executable, str(script), "experiment", "predict", str(file)]
    command += ["--output", str(tmp_path / "out"), "--jobs", "2"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        assert process.stderr is not None
        try:
            assert "of 80 points" in process.stderr.readline()
            os.killpg(process.pid, signal.SIGINT)
            rest = process.stderr.read()
        finally:  # it would not end by itself
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 130
    assert "Finished points are kept" in rest and "Traceback" not in rest
    kept = [line for path in (tmp_path / "out/points").iterdir() for line in path.read_text().splitlines()]
    assert 8 <= len(kept) <= 40 and all(json.loads(line)["outcome"] == "finished" for line in kept)


def test_the_time_left_is_the_mean_of_each_world_times_what_is_left_there() -> None:
    spec: Any = None
    tasks = [Task(spec, str(number), "predicted") for number in range(4)] + [Task(spec, "e", "emulated")]
    stream = io.StringIO()
    with PointsProgress(tasks, total=6, jobs=2, stream=stream) as progress:
        progress.take(Result(digest="0", world="predicted", outcome="finished", wall_s=4.0))
        assert progress.remaining_s() is None  # no emulated point has shown how long one takes
        progress.take(Result(digest="e", world="emulated", outcome="finished", wall_s=60.0))
        assert progress.remaining_s() == 3 * 4.0 / 2
    assert stream.getvalue().splitlines()[-1] == "3 of 6 points, about 6 s left"


@pytest.mark.parametrize("name", shipped_names())
def test_every_shipped_experiment_can_be_carried_out(name: str) -> None:
    points = expand(load(name), Sources(cluster=topologies.load, preset=topologies.preset))
    assert all(point.spec is not None for point in points)
