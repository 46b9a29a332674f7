"""Runs at native speed beside plain torch and torch.distributed's gloo, on the same links, in turn."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.emulation.clusters import star
from bench.native.native_bounds import NEW_TOKENS, PROMPT, Place, Speed, bounds_at
from bench.tables.rows import Table
from emulator.calibration.known import host_name, known_calibration, time_needed_s
from emulator.calibration.shapes import SHORT
from emulator.session.calls import call
from emulator.session.client import emulate
from engine.domain.calibration import Calibration
from engine.domain.errors import HostError, RunError
from engine.domain.model import ModelSpec
from engine.domain.spec import RunSpec
from engine.domain.workload import Workload
from engine.models import catalogue
from engine.strategies.registry import by_rule

RATES = (1000e6, 100e6, 20e6)
SIZES = (2, 4)
REPEATS = 2
"""How often every system is started, unless the command says otherwise: 7 minutes each."""
ROUNDS, SLOW_ROUNDS = 2, 1
"""How often a system that was started is timed, after a round that is not; the second on the
slowest links.
"""

OUR_FLOP_PER_S = 5e10

BASELINES = {"tensor": "torch, tensor parallel over gloo", "pipeline": "torch, pipeline over gloo"}
PLAIN = "plain torch"
SINGLE = "EdgeLoom single"
OURS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("megatron", {}),
    ("megatron", {"head": "columns", "embedding": "auto"}),
    ("gpipe", {"head": "last"}),
)
CAUSES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("megatron", {"head": "columns"}),
    ("gpipe", {}),
    ("megatron", {"all_reduce": "ring"}),
)
"""Choices whose worth is measured, at the middle rate alone."""

MODULE = "bench.native.gloo_rank"
ROOT = Path(__file__).resolve().parents[2]


PLACES = (Place(1, 0.0), *(Place(count, rate) for count in SIZES for rate in RATES))


def needed_calibration() -> Calibration:
    """The calibration in the cache. Raises `HostError` if there is none of this processor."""
    known = known_calibration()
    if known is None:
        raise HostError(
            f"This machine ({host_name()}) is not calibrated: run ./loom calibrate first, which takes about "
            f"{time_needed_s(SHORT):.0f} s now."
        )
    return known


def measure_native(repeats: int = REPEATS) -> Table:
    """Compare systems at native speed. Repeats are interleaved: the speed of a shared machine changes within
    minutes.
    """
    known = needed_calibration()
    found: dict[str, dict[Place, list[Speed]]] = defaultdict(lambda: defaultdict(list))
    for _ in range(repeats):
        for place in PLACES:
            for name, speeds in speeds_at(place):
                found[name][place] += speeds
                sys.stderr.write(f"{name}, {place.title}: {_cell(speeds)}\n")
    prompt_s = min(
        statistics.median(speed.first_s for speed in found[name][PLACES[0]]) for name in (PLAIN, SINGLE)
    )
    for place in PLACES:
        for name, bound in bounds_at(place, model_of_105m(), known.profile.memory_byte_per_s, prompt_s):
            found[name][place].append(bound)
    return table_of(found, repeats)


def table_of(found: dict[str, dict[Place, list[Speed]]], repeats: int = REPEATS) -> Table:
    rows = [
        (name, *(_cell(speeds[place]) if place in speeds else "" for place in PLACES))
        for name, speeds in found.items()
    ]
    title = (
        "A Llama-like model of 105.8 million parameters, float32 where nothing else is said, "
        f"{PROMPT} + {NEW_TOKENS} tokens, one "
        "thread per process: tokens per second of the prompt / of decoding, medians of "
        f"{ROUNDS} rounds (at {RATES[-1] / 1e6:g} Mbit/s {SLOW_ROUNDS}) in {_runs(repeats)}, on the same "
        "links. Every EdgeLoom run was "
        "compared with transformers. Bounds: the weights of a step are read once at this host's rate; a "
        "prompt's arithmetic is the faster one of one device, divided by the cores that share it; messages "
        "take their bytes at the link's rate, sums by the algorithm that is fastest so."
    )
    return Table(title, ("", *(place.title for place in PLACES)), tuple(rows))


def _runs(repeats: int) -> str:
    return "one run" if repeats == 1 else f"each of {repeats} runs in turn"


def rounds_at(place: Place) -> int:
    return SLOW_ROUNDS if place.bit_per_s == RATES[-1] else ROUNDS


def _cell(speeds: list[Speed]) -> str:
    first_s, token_s = (statistics.median(times) for times in zip(*speeds, strict=True))
    return f"{PROMPT / first_s:.0f} / {1 / token_s:.1f}"


def speeds_at(place: Place) -> Iterator[tuple[str, list[Speed]]]:
    """Every system, started once."""
    if place.devices == 1:
        yield PLAIN, baseline(place, "tensor")
        yield SINGLE, ours(place, "single", {})
        for bits in (8, 4):
            yield f"{SINGLE}, weights of {bits} bits", ours(place, "single", {}, bits)
        return
    for kind, name in BASELINES.items():
        yield name, baseline(place, kind)
    for strategy, params in (*OURS, *CAUSES) if place.bit_per_s == RATES[1] else OURS:
        words = "".join(f", {key} {value}" for key, value in params.items())
        yield f"EdgeLoom {strategy}{words}", ours(place, strategy, params)


def baseline(place: Place, kind: str) -> list[Speed]:
    times = call(gloo_times, kind, place.devices, place.bit_per_s or RATES[0], rounds_at(place))
    return [Speed(*one) for one in times]


def gloo_times(kind: str, devices: int, bit_per_s: float, rounds: int) -> list[tuple[float, float]]:
    """Run all ranks of a baseline in the devices' namespaces; raises `HostError` if one fails."""
    from emulator.network.mininet_network import MininetNetwork

    model = model_of_105m()
    network = MininetNetwork(star(devices, OUR_FLOP_PER_S, bit_per_s), 1.0)
    with network:
        task: dict[str, Any] = {
            "kind": kind,
            "addresses": [network.address(rank) for rank in range(devices)],
            "layers": model.num_layers,
            "hidden": model.hidden_size,
            "heads": model.num_heads,
            "intermediate": model.intermediate_size,
            "vocab": model.vocab_size,
            "prompt": PROMPT,
            "new_tokens": NEW_TOKENS,
            "rounds": rounds,
        }
        ranks = []
        for rank in range(devices):
            inside = ("nsenter", f"--net=/proc/{network.pid(rank)}/ns/net")
            line = (*inside, sys.executable, "-m", MODULE, json.dumps(task | {"rank": rank}))
            ranks.append(subprocess.Popen(line, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE))
        answers = [process.communicate() for process in ranks]
    for process, (_, errors) in zip(ranks, answers, strict=True):
        if process.returncode:
            last = (errors.decode().strip().splitlines() or ["it gave no reason"])[-1]
            raise HostError(f"A rank of the baseline {kind} failed: {last}.")
    return [(first_s, token_s) for first_s, token_s in json.loads(answers[0][0])]


def ours(place: Place, strategy: str, params: dict[str, Any], bits: int = 0) -> list[Speed]:
    """All requests but the first: the baselines, too, have a round before they are timed.

    Raises `RunError` if the run did not finish with the reference's tokens and logits.
    """
    spec = spec_at(place, strategy, params, requests=1 + rounds_at(place))
    in_bits = spec.model.model_copy(update={"weight_bits": bits})
    report = emulate(spec.model_copy(update={"model": in_bits}), lambda events: None)
    if report.outcome.kind != "finished" or not report.correctness.ok:
        why = report.outcome.sentence or report.correctness.why
        raise RunError(f"{strategy} at {place.title} was to finish with the right tokens: {why}.")
    timed = report.requests[1:]
    return [Speed(one.ttft_s, (one.token_s[-1] - one.token_s[0]) / (NEW_TOKENS - 1)) for one in timed]


def spec_at(place: Place, strategy: str, params: dict[str, Any], requests: int = 1) -> RunSpec:
    """The run at a place: requests one after the other, at native speed."""
    return RunSpec(
        cluster=star(place.devices, OUR_FLOP_PER_S, place.bit_per_s or RATES[0]),
        model=model_of_105m(),
        workload=Workload(prompt_tokens=PROMPT, new_tokens=NEW_TOKENS, requests=requests),
        strategy=strategy,
        params=by_rule(strategy) | params,  # every device takes part
        dilation="native",
    )


def model_of_105m() -> ModelSpec:
    """A model of 105.8 million parameters: tinyllama-42m, wider, with 8 layers of 768 and a head of its
    own.
    """
    model, _ = catalogue.resolve("tinyllama-42m", "random")
    wider = {"hidden_size": 768, "num_heads": 12, "num_kv_heads": 12, "intermediate_size": 2048}
    return model.model_copy(update=wider | {"name": "llama-106m", "tied_head": False})
