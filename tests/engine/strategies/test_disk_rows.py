"""KV rows on disk: which rows of which layer move when, call by call, worked by hand."""

import pytest

from engine.domain.plan import Plan
from engine.ops.core import Attention
from engine.program.strategy import Step
from engine.strategies.shared.kv_disk import DiskRows, disk_rows
from engine.strategies.shared.pipeline import PipelineLayout
from tests.support.small_cases import GPT2


class Done:
    def __init__(self, log, what):
        self.log, self.what = log, what

    def __await__(self):
        self.log.append(f"await {self.what}")
        return self.what
        yield


class LoggingCtx:
    """Writes down what a device is asked for, and what is awaited."""

    def __init__(self):
        self.log, self.model = [], GPT2

    def _start(self, what):
        self.log.append(what)
        return Done(self.log, what)

    def compute(self, op, *inputs):
        self.log.append(f"compute {op.layer}")
        return Done([], "")

    @property
    def managed_memory(self):
        return self

    def fetch_rows(self, cache, layer):
        return self._start(f"fetch {layer}")

    def store_rows(self, cache, layer, rows):
        return self._start(f"store {layer} {rows}")

    def drop_rows(self, cache, layer):
        self.log.append(f"drop {layer}")


def step(start, rows):
    return Step(phase="decode", cache="c", batch=1, start=start, rows=rows, index=1, requests=(0,))


def plan(kept):
    return Plan(strategy="x", holdings=(), work=(), layout=PipelineLayout(stages=(), kv_memory_rows=kept))


def run(coroutine):
    try:
        coroutine.send(None)
    except StopIteration as stop:
        return stop.value
    raise AssertionError("every handle of this test is done at once")


def log_of(kept, start, rows, layers=range(3)):
    ctx = LoggingCtx()
    disk = DiskRows(ctx, plan(kept), step(start, rows), layers)
    disk.begin()
    for layer in layers:
        run(disk.compute(Attention(layer, 0, 4, True, "c"), None))
    run(disk.settle())
    return ctx.log


def test_the_next_layer_s_rows_come_while_a_layer_runs_and_its_own_leave_while_the_next_one_does():
    """Of 10 rows 6 stay: before the step 9 - 6 = 3 are on disk, after it 4."""
    assert log_of(kept=6, start=9, rows=1) == [
        "fetch 0",
        *("await fetch 0", "fetch 1", "compute 0", "store 0 4"),
        *("await store 0 4", "drop 0", "await fetch 1", "fetch 2", "compute 1", "store 1 4"),
        *("await store 1 4", "drop 1", "await fetch 2", "compute 2", "store 2 4"),
        *("await store 2 4", "drop 2"),
    ]


def test_at_most_two_layers_are_whole_in_memory_at_a_time():
    whole, most = set(), 0
    for entry in log_of(kept=6, start=9, rows=1):
        word, *rest = entry.split()
        if word in ("fetch", "drop"):
            (whole.add if word == "fetch" else whole.discard)(rest[0])
        most = max(most, len(whole))
    assert most == 2 and not whole


def test_a_prompt_has_no_rows_on_disk_yet_and_stores_those_beyond_the_limit():
    assert log_of(kept=6, start=0, rows=8, layers=range(1)) == [
        "compute 0",
        "store 0 2",
        "await store 0 2",
        "drop 0",
    ]


@pytest.mark.parametrize("kept", [10, 11, None])
def test_rows_within_the_limit_never_touch_the_disk(kept):
    assert log_of(kept=kept, start=9, rows=1) == ["compute 0", "compute 1", "compute 2"]


def test_a_stage_fetches_only_its_own_layers():
    log = log_of(kept=6, start=9, rows=1, layers=range(5, 7))
    assert [entry for entry in log if entry.startswith("fetch")] == ["fetch 5", "fetch 6"]


def test_a_device_without_heads_has_no_rows_to_move():
    ctx = LoggingCtx()
    disk = disk_rows(ctx, plan(6), step(9, 1), (2, 2))
    disk.begin()
    assert not disk.active and ctx.log == []
    assert disk_rows(ctx, plan(6), step(9, 1), (1, 2)).layers == range(GPT2.num_layers)
