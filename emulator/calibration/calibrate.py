"""Measures how fast one thread of this machine computes whole passes of models, and what its runtime costs.

The steps, each of which prints how far it is from the passes that it is to predict (`Step`):

choice      the fastest kernel of products by shape (`engine/runs/host_kernels.py`)
kernels     every kernel by itself: products on a grid of shapes, attention, element-wise passes (`tables.py`)
passes      layers of made-up models (`shapes.py`), operation by operation, weights coming from memory; the
            tables of the kernels are corrected by them (`correction.py`)
row         one core as a device of a cluster file: the roofline whose efficiencies reproduce the tables
in runs     operations in runs on one device, after each round of passes (`in_runs.py`), and what the runtime
            costs there (`runtime.py`)
slowdown    operations of several processes at once (`contention.py`)

The result is a `Calibration`: the tables for the compute model `measured`, and the device row. What messages
cost is measured afterwards, in runs over links (`emulator/session/link_messages.py`).
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from emulator.calibration.contention import measure_slowdown
from emulator.calibration.correction import correct
from emulator.calibration.device_row import device_row
from emulator.calibration.in_runs import in_runs, run_alone, work_s
from emulator.calibration.known import PAUSED, PROGRESS
from emulator.calibration.operations import (
    TimedOperation,
    draw,
    random_weights,
    time_operations,
    time_sequence,
)
from emulator.calibration.residuals import TimedPrediction, compare, residuals
from emulator.calibration.runtime import Run, computing_costs
from emulator.calibration.shapes import EXTENTS, Extent, packed_stores, stores
from emulator.calibration.stopwatch import CoreShare
from emulator.calibration.tables import Times, as_tables
from emulator.calibration.timed_kernels import TimedKernels
from engine.domain.calibration import Calibration
from engine.domain.cluster import ComputeModel
from engine.domain.host_times import ALONE_FRAC, ATTENTION, HostProfile, MeasuredPass
from engine.ops.cost import measured_s
from engine.runs.host_kernels import measured_kernels

if TYPE_CHECKING:  # torch takes a while to import
    from engine.models.weights.store import WeightStore

AGREED_FRAC = 0.02
"""The change of medians below which rounds agree. Everything is timed in rounds, seconds to minutes apart: a
shared machine is now and then two or three times as slow, for up to some seconds. Of kernels the least
counts, of passes the median. No further round is needed once the last has changed the medians by no more than
this: in the median of all passes.
"""

SMALLEST = (
    "tiny-gpt2",
    "tiny-bert",
    "tiny-llama",
)  # models whose operations mostly take the time of calling them
PASS_CACHED = (64, 400)
"""Rows of the KV cache in passes of one row: cached keys and values come from memory, too."""

PACKED_SEQUENCE_S = 0.1
"""Time for one sequence of a model with quantised weights, which are timed in one round alone."""

DISK_BYTES = 64 << 20


class Step(NamedTuple):
    """One step of a calibration: |predicted / measured - 1| of what it predicts, and the error of the sum."""

    name: str
    figures: int
    median: float
    p95: float
    total: float


class Raw(NamedTuple):
    """The measurements of the rounds, each a line of names, sizes and seconds: what any fit starts from."""

    kernels: tuple[tuple[Any, ...], ...]
    passes: tuple[tuple[Any, ...], ...]
    runs: tuple[tuple[Any, ...], ...] = ()


class Measured(NamedTuple):
    """A calibration, how far each step is off, predictions of the operations of named models, and the
    measurements.
    """

    calibration: Calibration
    steps: tuple[Step, ...]
    comparisons: tuple[TimedPrediction, ...]
    raw: Raw = Raw((), ())


class Round(NamedTuple):
    """What one round has timed, and the part of its time for which it had a core."""

    kernels: Times
    passes: list[TimedOperation]
    quantised: list[TimedOperation]
    operations: list[TimedOperation]
    core_frac: float


class HostTimes(NamedTuple):
    """The times of this host: of kernels alone, and the times of operations of the made-up and of named
    models.
    """

    profile: HostProfile
    passes: list[TimedOperation]
    named: list[TimedOperation]
    raw: Raw


def nothing() -> None:
    """Do nothing: the default between two rounds."""


def calibrate(
    extent: Extent,
    models: Sequence[str] = (),
    rows: Sequence[int] = (),
    between: Callable[[], None] = nothing,
) -> Measured:
    """Measure now; time operations of `models` on `rows` rows in turn with the rest, and compare.

    The speed of a shared machine changes within minutes; measuring in turn lets it change both alike. For
    the same reason a caller may measure something of its own after each round: `between` does it.
    Sets torch to one thread in this process.
    """
    with tempfile.TemporaryDirectory(prefix="edgeloom-") as directory:
        made_up, packed = stores(extent, Path(directory)), packed_stores(extent, Path(directory))
        draw(made_up, extent.working_set_bytes)
        named = [random_weights(name) for name in models]
        runs: list[Run] = []

        def after_round() -> None:
            say("operations in runs on one device")
            runs.append(run_alone(len(runs), Path(directory)))
            between()

        all_rounds = between is not nothing
        alone, passes, timed, raw = host_profile(
            extent, made_up, named, rows, after_round, packed, all_rounds
        )
        say("correcting kernels by passes")
        profile = correct(alone, passes)
        slower = in_runs(runs, profile)
        raw = raw._replace(runs=tuple((run.prepared.spec.model.name, *work_s(run.trace)) for run in runs))
        say("slowdown of processes that compute at once")
        slowdown = measure_slowdown(made_up[-1], extent)
    say("device row")
    shared = {"in_runs": slower, "slowdown": slowdown, "cores": len(os.sched_getaffinity(0))}
    profile = profile.model_copy(update={"runtime": computing_costs(runs).model_copy(update=shared)})
    found = Calibration(profile=profile, device=device_row(profile, _disk_byte_per_s()))
    steps = [
        _step("kernels alone", compare(found.model_copy(update={"profile": alone}), passes)),
        _step("corrected by whole passes", compare(found, passes)),
        _step("device row", compare(found, passes), "roofline"),
    ]
    comparisons = compare(found, timed)
    if comparisons:
        steps.append(_step("other models", comparisons))
    return Measured(found, tuple(steps), tuple(comparisons), raw)


def say(what: str) -> None:
    """Tell the parent process, which shows it, what is being measured now."""
    sys.stderr.write(f"{PROGRESS}{what}\n")
    sys.stderr.flush()


def pause() -> None:
    """Tell the parent process that a round is over, and wait until it says to go on."""
    sys.stderr.write(f"{PAUSED}\n")
    sys.stderr.flush()
    sys.stdin.readline()


def _step(name: str, comparisons: Sequence[TimedPrediction], model: ComputeModel = "measured") -> Step:
    return Step(name, len(comparisons), *residuals(comparisons, model))


def host_profile(
    extent: Extent,
    made_up: Sequence[WeightStore] = (),
    named: Sequence[WeightStore] = (),
    named_rows: Sequence[int] = (),
    between: Callable[[], None] = nothing,
    packed: Sequence[WeightStore] = (),
    all_rounds: bool = False,
) -> HostTimes:
    """Time kernels alone, operations of the models `made_up` and `packed`, and those of the models `named` on
    `named_rows`, in rounds that end when their medians agree, or with `all_rounds` do not. One beside other
    work is repeated, at most as often as there may be rounds. After each that counts, `between` is called.
    """
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(0)
    rounds, repeated = list[Round](), 0
    with torch.inference_mode():
        kernels = TimedKernels(torch)
        while len(rounds) < extent.rounds and (all_rounds or not agreed([one.passes for one in rounds])):
            say(f"round {len(rounds) + 1} of at most {extent.rounds}")
            one = _round(extent, kernels, len(rounds), made_up, packed, named, named_rows)
            if one.core_frac < ALONE_FRAC and repeated < extent.rounds:
                say(f"once more: other processes had the core for {1 - one.core_frac:.0%} of the round")
                repeated += 1
                continue
            rounds.append(one)
            with torch.inference_mode(False):
                between()
        kernel_rounds = [one.kernels for one in rounds if one.kernels]
        tables = as_tables({name: min(one[name] for one in kernel_rounds) for name in kernel_rounds[0]})
        calls = (*tables.passes, _attention_call(tables, kernels.crowd))
    core_frac = round(min(one.core_frac for one in rounds), 3)
    profile = HostProfile.model_validate(dict(tables) | {"passes": calls, "core_frac": core_frac})
    passes, quantised = [one.passes for one in rounds], rounds[0].quantised
    turns = [*zip(*passes, strict=True), *zip(quantised, strict=True)]
    once = as_in_all(passes, quantised)
    operations = [one.operations for one in rounds]
    return HostTimes(profile, _medians(passes) + once, _medians(operations), _raw(kernel_rounds, turns))


def _round(
    extent: Extent,
    kernels: TimedKernels,
    number: int,
    made_up: Sequence[WeightStore],
    packed: Sequence[WeightStore],
    named: Sequence[WeightStore],
    named_rows: Sequence[int],
) -> Round:
    """Time everything once: kernels in the first rounds, what is packed in the very first."""
    times: Times = {}
    quantised: list[TimedOperation] = []
    with CoreShare() as share:
        if number < extent.kernel_rounds:
            say("kernels alone")
            figures = kernels.figures(extent.kernel_rows, extent.kernel_sides)
            times = {name: figure.seconds() for name, figure in figures}
        say(f"passes of {len(made_up)} made-up models")
        passes = time_operations(made_up, extent.rows, PASS_CACHED, extent)
        if packed and not number:
            say("passes with weights in 8 and 4 bits")
            of_packed = extent._replace(sequences=extent.sequences[:1], sequence_s=PACKED_SEQUENCE_S)
            quantised = time_operations(packed, extent.packed_rows, PASS_CACHED[:1], of_packed)
        if named:
            say(f"operations of {len(named)} other models")
        operations = time_operations(named, named_rows)
    return Round(times, passes, quantised, operations, share.frac)


def agreed(rounds: Sequence[Sequence[TimedOperation]]) -> bool:
    """Whether the last of these rounds has left the medians as they were, see `AGREED_FRAC`."""
    if len(rounds) < 2 or not rounds[0]:
        return False
    pairs = zip(_medians(rounds[:-1]), _medians(rounds), strict=True)
    return statistics.median(abs(now.seconds / was.seconds - 1) for was, now in pairs) <= AGREED_FRAC


def as_in_all(
    rounds: Sequence[Sequence[TimedOperation]], once: Sequence[TimedOperation]
) -> list[TimedOperation]:
    """`once`, timed in the first of `rounds` alone, at the speed that the machine had in all of them."""
    if not once:
        return []
    pairs = zip(_medians(rounds), rounds[0], strict=True)
    slower = statistics.median(of_all.seconds / first.seconds for of_all, first in pairs)
    return [item._replace(seconds=slower * item.seconds) for item in once]


def _raw(kernels: Sequence[Times], passes: Sequence[Sequence[TimedOperation]]) -> Raw:
    """`passes` has all times of each operation."""
    return Raw(
        tuple((*name, *(one[name] for one in kernels)) for name in kernels[0]),
        tuple(
            (turns[0].model, turns[0].operation, turns[0].rows, *(turn.seconds for turn in turns))
            for turns in passes
        ),
    )


def _medians(rounds: Sequence[Sequence[TimedOperation]]) -> list[TimedOperation]:
    """Every operation with the median of its times: a run's operations take what they take, not the least."""
    return [
        turns[0]._replace(seconds=statistics.median(turn.seconds for turn in turns))
        for turns in zip(*rounds, strict=True)
    ]


def _attention_call(tables: HostProfile, crowd: Callable[[], Any]) -> MeasuredPass:
    """The time of attention beyond that of its kernels in `tables`: views, RoPE tables, the KV cache."""
    surplus = []
    for name in SMALLEST:
        timed = time_sequence(random_weights(name), "parts", 1, 16, crowd)
        (attention,) = (item for item in timed if item.operation == "attention")
        # without the pass whose cost is computed here
        kernels = [k for k in attention.kernels if (k.kind, k.name) != ("elementwise", ATTENTION)]
        surplus.append(attention.seconds - sum(measured_s(tables, kernel) for kernel in kernels))
    return MeasuredPass(name=ATTENTION, overhead_s=max(0.0, statistics.fmean(surplus)), s_per_element=0.0)


def _disk_byte_per_s() -> float:
    """Write a file to the disk, drop it from the page cache, and time reading it once."""
    block = os.urandom(1 << 20)
    with tempfile.NamedTemporaryFile(dir=Path.home()) as file:
        for _ in range(DISK_BYTES >> 20):
            file.write(block)
        file.flush()
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, DISK_BYTES, os.POSIX_FADV_DONTNEED)
        file.seek(0)
        began_s = time.perf_counter()
        while file.read(1 << 20):
            continue
        return DISK_BYTES / (time.perf_counter() - began_s)


def main(extent: str, models: str, rows: str, pauses: str) -> int:
    """Print a `Measured` as JSON, in a process of its own, so that its torch threads and memory end.

    `extent` is one of `EXTENTS`; `pauses` is yes if it is to wait for its parent after each round.
    """
    from engine.ops.torch_kernels.heap import keep_freed_memory
    from engine.ops.torch_kernels.linear import use

    keep_freed_memory()  # as device processes do
    say("choice of kernels")
    use(measured_kernels())
    between = pause if pauses == "yes" else nothing
    found = calibrate(EXTENTS[extent], models.split(",") if models else (), json.loads(f"[{rows}]"), between)
    answer = {
        "calibration": found.calibration.model_dump(mode="json"),
        "steps": found.steps,
        "comparisons": found.comparisons,
        "raw": found.raw._asdict(),
    }
    sys.stdout.write(json.dumps(answer) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
