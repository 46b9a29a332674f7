"""An open workload on real devices over loopback: asked, cancelled, a device lost, ended, and proven."""

import json
import os
import subprocess
import sys

import pytest

from engine.domain.report import RunReport

SCRIPT = """
import json
import sys
from engine.domain.network import LoopbackNetwork
from engine.domain.workload import Workload
from engine.models import catalogue
from engine.runs.execute import execute
from tests.support.small_cases import spec_of, star

model, weights = catalogue.resolve("tiny-llama")
work = {"pattern": "serve", "prompt_tokens": 8, "new_tokens": 30, "requests": 9, "max_batch": 2}
spec = spec_of("gpipe", model, star((4e8, 1e8, 2.5e8))).model_copy(
    update={"weights": weights, "dilation": 16.0, "workload": Workload.parse(work, "test")}
)
commands = []
ended = set()

def ask(name, tokens, new_tokens):
    commands.append({"kind": "ask", "id": name, "tokens": tokens, "new_tokens": new_tokens})

said = {}

def watch(event):
    if event.type == "process_log":
        said.setdefault(event.device, []).extend(event.lines)
    if event.type == "state" and event.state == "running":
        ask("long", [1, 2, 3], 30)
        ask("waits", [5, 6], 30)
        ask("short", [9, 8, 7, 6], 4)
    if event.type != "mark":
        return
    if event.name == "token_emitted" and event.facts["request"] == 0 and event.facts["index"] == 1:
        commands.append({"kind": "withdraw", "id": "waits", "by": "carol"})
        commands.append({"kind": "drop_device", "device": "d2"})
    if event.name == "request_finished" and event.facts["request"] == 2:
        ask("cut", [4, 4], 30)
    if event.name == "token_emitted" and event.facts["request"] == 3 and event.facts["index"] == 2:
        commands.append({"kind": "end_service", "by": "carol"})

report = execute(
    spec, lambda spec, dilation: LoopbackNetwork(spec.cluster), watch,
    lambda: commands.pop(0) if commands else None,
)
print(json.dumps(said))
print(report.model_dump_json())
"""


TRIES = 8


def played():
    """What the script prints; its last line as a report."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, env=os.environ, timeout=600.0
    )
    assert done.returncode == 0, done.stderr[-3000:]
    lines = done.stdout.splitlines()
    return lines, RunReport.model_validate_json(lines[-1])


@pytest.fixture(scope="module")
def service():
    """A busy host may let a whole batch pass before it cancels a request: then it is played again."""
    for _ in range(TRIES):
        lines, report = played()
        if not report.requests[1].token_s and report.recoveries:
            break
    return lines, report


@pytest.fixture(scope="module")
def printed(service):
    return service[0]


@pytest.fixture(scope="module")
def report(service):
    return service[1]


def test_every_token_is_proven_also_those_of_a_request_that_went_on_after_a_device_was_lost(report):
    assert report.outcome.kind == "finished"
    assert report.correctness.ok, report.correctness
    assert report.recoveries
    lengths = [len(request.token_s) for request in report.requests]
    assert lengths[:3] == [30, 0, 4]
    assert 3 <= lengths[3] < 30
    assert [len(row.tokens) for row in report.spec.workload.trace] == [3, 4, 2]
    assert [row.new_tokens for row in report.spec.workload.trace] == [30, 4, lengths[3]]


def test_a_cancelled_request_leaves_the_queue_and_an_unanswered_one_is_cut_at_the_end(report):
    answered = [request.answered_s is not None for request in report.requests]
    assert answered == [True, False, True, False]
    cancelled = [request.cancelled_s is not None for request in report.requests]
    assert cancelled == [False, True, False, True]
    assert report.requests[1].queue_s is None


def test_every_process_says_where_it_listens_what_it_holds_to_whom_it_talks_and_what_it_has_used(printed):
    said = json.loads(printed[-2])
    assert said.keys() == {"d0", "d1", "d2"}
    for lines in said.values():
        assert "listens on 127." in lines[0]
        assert "slices of the weights" in lines[1]
        assert lines[2].startswith("It has opened connections to d")
    assert said["d0"][-1].startswith("Program finished: ")
    assert not any("Program" in line for line in said["d2"])  # it was killed


def test_the_prediction_plays_the_same_requests(report):
    """They are asked when they were asked in the run, which a busy machine makes longer, not shorter."""
    assert report.predictions.with_all_changes_known is not None
    last_asked_s = report.spec.workload.trace[-1].at_s
    assert last_asked_s < report.predictions.with_all_changes_known.latency_s < 1.5 * report.latency_s
