"""Runs at native speed beside plain torch and torch.distributed's gloo, on the same links, in turn."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from emulator.bench.clusters import star
from emulator.bench.rows import Table
from emulator.session.calls import call
from emulator.session.client import emulate
from engine.cli.command import Environment
from engine.domain.errors import HostError, RunError
from engine.domain.model import ModelSpec
from engine.domain.spec import RunSpec
from engine.domain.workload import Workload
from engine.models import catalogue

PROMPT, NEW_TOKENS = 128, 32
RATES = (1000e6, 100e6, 20e6)
SIZES = (2, 4)
REPEATS = 2
OUR_FLOP_PER_S = 5e10

BASELINES = {"tensor": "torch, tensor parallel over gloo", "pipeline": "torch, pipeline over gloo"}
PLAIN = "plain torch"
OURS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("megatron", {}),
    ("megatron", {"head": "columns"}),
    ("gpipe", {}),
)
FORMER: tuple[str, dict[str, Any]] = ("megatron", {"all_reduce": "ring"})
"""Measured at the middle rate alone, for what the choice of the all-reduce is worth."""

MODULE = "emulator.bench.gloo_rank"
ROOT = Path(__file__).resolve().parents[2]


class Place(NamedTuple):
    """A column of the table: so many devices on links of this rate; 0: one device."""

    devices: int
    bit_per_s: float

    @property
    def title(self) -> str:
        return "1 device" if self.devices == 1 else f"N={self.devices}, {self.bit_per_s / 1e6:g} Mbit/s"


class Speed(NamedTuple):
    """Seconds of the first token and of each later one."""

    first_s: float
    token_s: float


PLACES = (Place(1, 0.0), *(Place(count, rate) for count in SIZES for rate in RATES))


def measure_native(environment: Environment) -> Table:
    """Repeats are interleaved: the speed of a shared machine changes within minutes."""
    found: dict[str, dict[Place, list[Speed]]] = defaultdict(lambda: defaultdict(list))
    for _ in range(REPEATS):
        for place in PLACES:
            for name, speed in speeds_at(place):
                found[name][place].append(speed)
                sys.stderr.write(f"{name}, {place.title}: {_cell([speed])}\n")
    return table_of(found)


def table_of(found: dict[str, dict[Place, list[Speed]]]) -> Table:
    rows = [
        (name, *(_cell(speeds[place]) if place in speeds else "" for place in PLACES))
        for name, speeds in found.items()
    ]
    title = (
        f"A Llama-like model of 105.8 million parameters, float32, {PROMPT} + {NEW_TOKENS} tokens, one "
        "thread per process: tokens per second of the prompt / of decoding, medians of "
        f"{REPEATS} runs in turn, on the same links. Every EdgeLoom run was compared with transformers."
    )
    return Table(title, ("", *(place.title for place in PLACES)), tuple(rows))


def _cell(speeds: list[Speed]) -> str:
    first_s, token_s = (statistics.median(times) for times in zip(*speeds, strict=True))
    return f"{PROMPT / first_s:.0f} / {1 / token_s:.1f}"


def speeds_at(place: Place) -> Iterator[tuple[str, Speed]]:
    """Every system once."""
    if place.devices == 1:
        yield PLAIN, baseline(place, "tensor")
        yield "EdgeLoom single", ours(place, "single", {})
        return
    for kind, name in BASELINES.items():
        yield name, baseline(place, kind)
    for strategy, params in (*OURS, FORMER) if place.bit_per_s == RATES[1] else OURS:
        words = "".join(f", {key} {value}" for key, value in params.items())
        yield f"EdgeLoom {strategy}{words}", ours(place, strategy, params)


def baseline(place: Place, kind: str) -> Speed:
    return Speed(*call(gloo_times, kind, place.devices, place.bit_per_s or RATES[0]))


def gloo_times(kind: str, devices: int, bit_per_s: float) -> tuple[float, float]:
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
    first_s, token_s = json.loads(answers[0][0])
    return first_s, token_s


def ours(place: Place, strategy: str, params: dict[str, Any]) -> Speed:
    """The second of two requests: the baselines, too, have run the prompt once before they are timed.

    Raises `RunError` if the run did not finish with the reference's tokens and logits.
    """
    report = emulate(spec_at(place, strategy, params, requests=2), lambda events: None)
    if report.outcome.kind != "finished" or not report.correctness.ok:
        why = report.outcome.sentence or report.correctness.why
        raise RunError(f"{strategy} at {place.title} was to finish with the right tokens: {why}.")
    last = report.requests[-1]
    return Speed(last.ttft_s, (last.token_s[-1] - last.token_s[0]) / (NEW_TOKENS - 1))


def spec_at(place: Place, strategy: str, params: dict[str, Any], requests: int = 1) -> RunSpec:
    """Requests one after the other, at native speed."""
    return RunSpec(
        cluster=star(place.devices, OUR_FLOP_PER_S, place.bit_per_s or RATES[0]),
        model=model_of_105m(),
        workload=Workload(prompt_tokens=PROMPT, new_tokens=NEW_TOKENS, requests=requests),
        strategy=strategy,
        params=params,
        dilation="native",
    )


def model_of_105m() -> ModelSpec:
    """tinyllama-42m, wider: 8 layers of 768, with a head of its own."""
    model, _ = catalogue.resolve("tinyllama-42m", "random")
    wider = {"hidden_size": 768, "num_heads": 12, "num_kv_heads": 12, "intermediate_size": 2048}
    return model.model_copy(update=wider | {"name": "llama-106m", "tied_head": False})
