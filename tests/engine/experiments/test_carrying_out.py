"""Points are carried out once each, kept at once, and go on where they were."""

from __future__ import annotations

import ast
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any

import pytest

import topologies
from engine.domain.calibration import calibration_digest
from engine.domain.errors import HostError
from engine.domain.experiment import Experiment
from engine.domain.report import Fidelity, RunReport
from engine.domain.spec import RunSpec
from engine.experiments.design import syntax
from engine.experiments.design.conditions import check_condition
from engine.experiments.design.expand import Point, expand
from engine.experiments.design.sources import Sources
from engine.experiments.execution import campaign, version
from engine.experiments.execution.campaign import carry_out_all, tasks_of
from engine.experiments.execution.point import Emulation, carry_out
from engine.experiments.execution.store import Store
from engine.experiments.execution.version import TENSORS_ONLY, code_version, version_of
from engine.experiments.results.metrics import metric, metrics_of
from engine.experiments.results.rows import Result, rows
from engine.experiments.results.versions import Versions
from engine.runs.predict import predict
from engine.strategies.registry import named
from tests.devtools.rooms import ROOT, read_parts
from tests.support.host_profiles import a_profile
from tests.support.outside import THIRDS, keep_methods_apart, write_method

SOURCES = Sources(cluster=topologies.load, preset=topologies.preset)
NOW = Versions(code={"predicted": "now"})


def points(*strategies: str, **base: Any) -> tuple[Point, ...]:
    """One small run per strategy."""
    factor = {"name": "strategy", "path": "strategy", "values": list(strategies)}
    workload = {"prompt_tokens": 4, "new_tokens": 2}
    run = {"cluster": "lab-3", "model": "tiny-gpt2", "weights": "random", "workload": workload, **base}
    made: Experiment = Experiment.parse({"name": "test", "base": run, "factors": [factor]}, "test")
    return expand(made, SOURCES)


def result(digest: str, outcome: str = "finished", version: str = "now", **more: Any) -> Result:
    return Result(digest=digest, world="predicted", outcome=outcome, code_version=version, **more)


def spec_of(point: Point) -> RunSpec:
    assert point.spec is not None
    return point.spec


# Results ------------------------------------------------------------------------------------------
def test_a_result_has_the_numbers_of_the_report() -> None:
    (point,) = points("megatron")
    report = predict(spec_of(point))
    found = carry_out(spec_of(point), point.digest, "predicted")
    assert found.outcome == "finished" and found.code_version == code_version()
    assert found.metrics["latency_s"] == report.latency_s
    assert found.metrics["ttft_s"] == report.ttft_s
    assert found.metrics["tpot_s"] == report.tpot_s
    assert found.metrics["link_bytes"] == sum(link.bytes for link in report.links)
    assert found.metrics["peak_memory_bytes[shelf]"] == report.devices[1].peak_memory_bytes
    assert "valid" not in found.metrics  # a prediction is not judged


def test_every_metric_of_a_result_has_a_title_and_a_unit_by_name() -> None:
    (point,) = points("mcu", cluster="mcu-8", model="tinyllama-42m")
    found = metrics_of(predict(spec_of(point)))
    assert {metric(name).name for name in found} == set(found)
    assert metric("method.plans.0.blocks.0.published_s").unit == "s"


def test_a_failure_that_comes_after_the_end_is_said_to_have_never_taken_place() -> None:
    """As an experiment on failures in which every run ends before the drop."""
    ends_s = predict(spec_of(points("voltage")[0])).latency_s
    found = {}
    for at_s in (ends_s / 2, ends_s * 2):
        drop = {"kind": "drop_device", "device": "shelf", "at_s": at_s}
        (point,) = points("voltage", scenario={"changes": [drop]}, silence_s=0.01)
        found[at_s] = carry_out(spec_of(point), point.digest, "predicted")
    took_place, missed = found.values()
    assert (took_place.metrics["changes_missed"], missed.metrics["changes_missed"]) == (0, 1)
    assert took_place.sentence == "" and "Never took place, since the run had ended" in missed.sentence
    assert "shelf" in missed.sentence
    parts = [took_place.metrics[f"recovery_{part}_s"] for part in ("detect", "replan", "reload", "rebuild")]
    assert sum(parts) == pytest.approx(took_place.metrics["recovery_s"])
    assert took_place.metrics["tokens_lost"] == 0 and "recovery_detect_s" not in missed.metrics


def test_a_run_without_a_plan_is_a_result_with_its_reason_and_the_rest_goes_on() -> None:
    made = points("tpi_llm", "single", model="opt-13b", workload={"prompt_tokens": 1, "new_tokens": 1})
    found = list(carry_out_all(tasks_of(made, ["predicted"], {}, NOW), lambda one: None, jobs=1))
    assert [one.outcome for one in found] == ["finished", "no_plan"]
    assert found[1].sentence.endswith(".") and found[1].metrics == {}


def test_the_calculated_world_has_the_predicted_times_and_compares_the_outputs() -> None:
    (point,) = points("megatron")
    found = carry_out(spec_of(point), point.digest, "calculated")
    assert found.metrics["latency_s"] == pytest.approx(predict(spec_of(point)).latency_s, rel=1e-9)
    assert found.metrics["correct"] == 1.0


def test_a_program_error_is_a_failed_result_and_a_missing_emulator_is_no_result() -> None:
    (point,) = points("single")

    def broken(spec: RunSpec) -> RunReport:
        raise ZeroDivisionError("oops")

    found = carry_out(spec_of(point), point.digest, "emulated", emulation=Emulation(broken, "e1"))
    assert (found.outcome, found.code_version) == ("failed", "e1")
    assert found.sentence == "the program failed: ZeroDivisionError: oops"
    with pytest.raises(HostError, match="cannot emulate"):
        carry_out(spec_of(point), point.digest, "emulated")


# What is left to do -------------------------------------------------------------------------------
def test_a_known_result_is_not_computed_again_and_points_with_one_hash_are_computed_once() -> None:
    made = points("single", "megatron")
    twice = (*made, *made)
    assert len(tasks_of(twice, ["predicted"], {}, NOW)) == 2
    known = {(made[0].digest, "predicted"): result(made[0].digest)}
    assert [task.digest for task in tasks_of(twice, ["predicted"], known, NOW)] == [made[1].digest]


def test_failed_and_stale_results_are_repeated_on_request_only() -> None:
    made = points("single", "megatron", "gpipe")
    outcomes = (("failed", "now"), ("finished", "before"), ("no_plan", "now"))
    known = {
        (point.digest, "predicted"): result(point.digest, outcome, version)
        for point, (outcome, version) in zip(made, outcomes, strict=True)
    }
    left = [
        [task.spec.strategy for task in tasks_of(made, ["predicted"], known, NOW, retry, stale)]
        for retry, stale in ((False, False), (True, False), (False, True))
    ]
    assert left == [[], ["single"], ["megatron"]]


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ("auto", "Not valid at dilation 6: it is left out of means. Its run recommends 12."),
        (6.0, "Not valid at dilation 6, which the experiment asks for, so it is not repeated: it is"),
    ],
)
def test_an_emulation_that_is_not_valid_says_so_and_what_it_recommends(asked: Any, told: str) -> None:
    (point,) = points("single", dilation=asked)

    def emulate(spec: RunSpec) -> RunReport:
        fidelity = Fidelity(valid=False, enough_dilation=12.0)
        changed = {"fidelity": fidelity, "dilation": 6.0, "world": "emulated"}
        return predict(spec).model_copy(update=changed)

    found = carry_out(spec_of(point), "digest", "emulated", emulation=Emulation(emulate, "now"))
    assert found.metrics["valid"] == 0 and found.sentence.startswith(told)


def test_predictions_come_before_emulations() -> None:
    made = points("single", "megatron")
    worlds = [task.world for task in tasks_of(made, ["emulated", "predicted"], {}, NOW)]
    assert worlds == ["predicted", "predicted", "emulated", "emulated"]


def test_rows_have_results_problems_and_staleness_and_leave_out_what_is_not_there() -> None:
    made = points("single", "megatron")
    bad = Point({"strategy": "magic"}, 0, None, "There is no magic.")
    known = {
        (made[0].digest, "predicted"): result(made[0].digest, version="before", metrics={"latency_s": 2.0})
    }
    found = rows((*made, bad), ["predicted"], known, NOW)
    assert [(row.coordinates["strategy"], row.outcome, row.stale) for row in found] == [
        ("single", "finished", True),
        ("magic", "refused", False),
    ]
    assert found[0].flat()["latency_s"] == 2.0 and found[1].sentence == "There is no magic."


# The store ----------------------------------------------------------------------------------------
def test_the_last_of_several_results_counts_and_other_experiments_results_are_left_alone(
    tmp_path: Path,
) -> None:
    store = Store(tmp_path)
    for one in (result("aa1", "failed"), result("aa2"), result("aa1", metrics={"latency_s": 0.1 + 0.2})):
        store.add(one)
    last = result("aa1", metrics={"latency_s": 0.1 + 0.2})
    assert store.read(["aa1", "bb1"]) == {("aa1", "predicted"): last}


def test_a_torn_last_line_is_passed_over_and_does_not_spoil_the_next_one(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.add(result("aa1"))
    (file,) = store.folder.iterdir()
    file.write_bytes(file.read_bytes() + b'{"digest":"aa2","wor')
    assert set(store.read(["aa1", "aa2"])) == {("aa1", "predicted")}
    store.add(result("aa3"))
    assert set(store.read(["aa1", "aa2", "aa3"])) == {("aa1", "predicted"), ("aa3", "predicted")}


def test_several_experiments_share_one_store(tmp_path: Path) -> None:
    first, second = points("single", "megatron"), points("megatron", "gpipe")
    store = Store(tmp_path)
    for _ in carry_out_all(tasks_of(first, ["predicted"], {}, NOW), store.add, jobs=1):
        pass
    known = store.read(point.digest for point in second)
    assert [task.spec.strategy for task in tasks_of(second, ["predicted"], known, NOW)] == ["gpipe"]


# The pool -----------------------------------------------------------------------------------------
def test_a_run_that_kills_its_process_twice_has_failed_and_no_other_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that were under way beside it are tried again, one after the other in one process."""
    keep_methods_apart(monkeypatch)
    deadly = THIRDS.replace("        first, last", "        os.kill(os.getpid(), 9)\n        first, last")
    named(str(write_method(tmp_path, deadly.replace("from pydantic", "import os\n\nfrom pydantic"))))
    made = points("single", "thirds", "megatron", "gpipe", "voltage", "edgeshard")
    started = processes_started(monkeypatch)
    results = list(carry_out_all(tasks_of(made, ["predicted"], {}, NOW), lambda one: None, jobs=2))
    assert sorted(one.digest for one in results) == sorted(point.digest for point in made)
    failed = {one.digest: one.sentence for one in results if one.outcome != "finished"}
    assert failed.keys() == {made[1].digest}
    assert all("died, twice" in sentence for sentence in failed.values())
    assert len(started) <= 6, "two before and two after it, one for it, one for those beside it"


PLAIN_SCRIPT = """
import sys

print("begins", flush=True)
from engine.experiments.execution.campaign import carry_out_all, tasks_of
from tests.engine.experiments.test_carrying_out import NOW, points

tasks = tasks_of(points("single", "megatron"), ["predicted"], {}, NOW)
print("done", [one.outcome for one in carry_out_all(tasks, lambda one: None, jobs=2)], __file__)
"""


def test_a_plain_script_is_not_run_again_by_the_processes_of_its_experiment(tmp_path: Path) -> None:
    script = tmp_path / "plain.py"
    script.write_text(PLAIN_SCRIPT)
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    ran = subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True)
    assert ran.stdout.splitlines() == ["begins", f"done ['finished', 'finished'] {script}"], ran.stderr[-500:]


def test_no_more_processes_are_started_than_there_are_points(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each imports for a second."""
    jobs: list[int] = []

    class Pool(ThreadPoolExecutor):
        def __init__(self, most: int, **_: Any) -> None:
            jobs.append(most)
            super().__init__(most)

    monkeypatch.setattr(campaign, "ProcessPoolExecutor", Pool)
    tasks = tasks_of(points("single", "megatron"), ["predicted"], {}, NOW)
    assert len(list(carry_out_all(tasks, lambda one: None, jobs=64))) == 2
    assert jobs == [2]


def processes_started(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Grows by every process that a pool starts."""
    started: list[Any] = []
    start = SpawnProcess.start
    monkeypatch.setattr(SpawnProcess, "start", lambda process: started.append(process) or start(process))
    return started


KILLED = """
import os, signal, sys
from pathlib import Path
sys.path[:0] = [{root!r}]
from tests.engine.experiments.test_carrying_out import points, NOW
from engine.experiments.execution.campaign import carry_out_all, tasks_of
from engine.experiments.execution.store import Store
if __name__ == "__main__":
    tasks = tasks_of(points("single", "megatron", "gpipe", "voltage"), ["predicted"], {{}}, NOW)
    for number, one in enumerate(carry_out_all(tasks, Store(Path({store!r})).add, jobs=1)):
        if number == 1:
            os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_was_done_before_a_kill_is_not_done_again(tmp_path: Path) -> None:
    root = str(Path(__file__).parents[3])
    script = tmp_path / "killed.py"
    script.write_text(KILLED.format(root=root, store=str(tmp_path)))
    ended = subprocess.run([sys.executable, str(script)], env={**os.environ, "PYTHONPATH": root}, check=False)
    assert ended.returncode == -signal.SIGKILL
    made = points("single", "megatron", "gpipe", "voltage")
    known = Store(tmp_path).read(point.digest for point in made)
    left = tasks_of(made, ["predicted"], known, NOW)
    assert [task.spec.strategy for task in left] == ["gpipe", "voltage"]


def test_code_and_conditions_are_parsed_by_one_thread_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "one.py").write_text("x = 1\n", encoding="utf-8")
    parse, alone = ast.parse, []

    def watched(text: str | bytes, mode: str) -> ast.AST:
        alone.append(syntax.PARSING.locked())
        return parse(text, mode=mode)

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(ast, "parse", watched)
    version_of([tmp_path])
    check_condition("rate <= 123456", ["rate"])
    assert alone == [True, True]


def test_the_version_of_the_code_changes_with_a_byte_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    file = tmp_path / "room" / "a.py"
    file.parent.mkdir()
    file.write_text("x = 1\n")
    before = version_of([tmp_path / "room"])
    (tmp_path / "room" / "notes.txt").write_text("not code")
    assert version_of([tmp_path / "room"]) == before
    file.write_text("x = 2\n")
    assert version_of([tmp_path / "room"]) != before


def test_comments_docstrings_and_layout_are_no_other_version_and_left_out_folders_do_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    file, apart = tmp_path / "room" / "code.py", tmp_path / "room" / "real"
    apart.mkdir(parents=True)
    file.write_text("def f(x):\n    return x + 1\n")
    (apart / "code.py").write_text("y = 1\n")
    before = version_of([tmp_path / "room"], [apart])
    file.write_text('"""Text."""\n\n\ndef f(x):\n    """More."""\n    # why\n    return (x +\n        1)\n')
    (apart / "code.py").write_text("y = 2\n")
    assert version_of([tmp_path / "room"], [apart]) == before
    assert version_of([tmp_path / "room"]) != before
    file.write_text('def f(x):\n    return x + "1"\n')
    assert version_of([tmp_path / "room"], [apart]) != before


@pytest.mark.parametrize(
    "around",
    [
        "if x:\n    y = 1\nelse:\n    {}",
        "try:\n    y = 1\nexcept ValueError:\n    {}",
        "try:\n    y = 1\nfinally:\n    {}",
        "match x:\n    case 1:\n        {}",
    ],
)
def test_the_docstring_of_a_function_in_any_part_of_a_statement_does_not_count(around: str) -> None:
    with_words, without, other = (
        version._without_words(around.format(code).encode())
        for code in ('def f(): "Words."; return 1', "def f(): return 1", "def f(): return 2")
    )
    assert with_words == without != other


def test_a_kept_version_is_used_for_the_same_bytes_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    file = tmp_path / "room" / "a.py"
    file.parent.mkdir()
    found = []
    for code in ("x = 1\n", "x = 2\n", "x = 1\n"):
        file.write_text(code)
        found.append(version_of([file.parent]))
        with monkeypatch.context() as again:
            again.setattr(version, "_without_words", lambda code: pytest.fail("it was parsed again"))
            assert version_of([file.parent]) == found[-1]
    assert found[0] == found[2] != found[1]


def test_only_files_that_no_version_had_are_parsed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    one, other = tmp_path / "room" / "one.py", tmp_path / "other" / "other.py"
    for file in (one, other):
        file.parent.mkdir()
        file.write_text(f"name = {file.stem!r}\n")
    version_of([one.parent])
    parsed: list[bytes] = []
    syntax_of = version._without_words
    monkeypatch.setattr(version, "_without_words", lambda code: parsed.append(code) or syntax_of(code))
    both = version_of([one.parent, other.parent])
    assert parsed == [other.read_bytes()]
    assert version_of([one.parent, other.parent]) == both != version_of([one.parent])
    assert len(parsed) == 1, "the file that was known is known still"


def test_the_version_of_the_code_is_of_every_room_that_a_run_imports() -> None:
    (engine,) = (part for part in read_parts() if part.name == "engine")
    rooms = {room.name: room for room in engine.rooms}
    waiting, needed = ["runs"], {"runs"}
    while waiting:
        others = set(rooms[waiting.pop()].imports) - needed
        waiting += others
        needed |= others
    folders = {path.split("/")[0] for name in needed for path in rooms[name].paths}
    assert folders == set(version.ROOMS)


def test_a_prediction_on_shapes_loads_nothing_that_its_version_leaves_out() -> None:
    modules = tuple("engine." + folder.replace("/", ".") for folder in TENSORS_ONLY)
    script = f"""
import sys
from tests.engine.experiments.test_carrying_out import points, spec_of
from engine.runs.predict import predict
loaded = set(sys.modules)
[predict(spec_of(point)) for point in points("voltage", "edgeformer", "lime")]
assert not [name for name in set(sys.modules) - loaded if name.startswith({modules!r})]
assert not [name for name in loaded if name.startswith({modules!r})]
"""
    subprocess.run([sys.executable, "-c", script], check=True)


# Calibrations -------------------------------------------------------------------------------------
def test_a_result_has_the_calibration_that_its_operations_took_and_another_one_makes_it_stale() -> None:
    (point,) = points("single", compute_model="measured")
    (free,) = points("single")
    old, new = a_profile("old"), a_profile("new")
    found = carry_out(spec_of(point), point.digest, "predicted", old)
    assert found.outcome == "finished" and found.calibration == calibration_digest(old) != ""
    assert carry_out(spec_of(free), free.digest, "predicted", old).calibration == ""
    own = spec_of(point).model_copy(update={"profile": old})
    assert carry_out(own, "its own times", "predicted").calibration == ""
    same = Versions(code={"predicted": found.code_version}, calibration=calibration_digest(old))
    other = same.model_copy(update={"calibration": calibration_digest(new)})
    known = {found.key: found}
    assert tasks_of([point], ["predicted"], known, same, repeat_stale=True) == ()
    assert len(tasks_of([point], ["predicted"], known, other, repeat_stale=True)) == 1
    (row,) = rows([point], ["predicted"], known, other)
    assert row.stale and row.calibration == found.calibration
    assert other.reason_stale("predicted", "x", found.calibration) == (
        "another version of the code and another calibration of the host"
    )
    assert Versions(code=same.code).reason_stale("predicted", found.code_version, found.calibration) == ""
