"""Lists the conclusions that changed with the rates of boards: does distributing pay, before and after.

Before, half of the peak took 24 rows on every preset, so that one row was bound by arithmetic, weights of
every format had the same rates, and a message of a Raspberry Pi 4 cost three times as much. Boards have
memory enough for the model: that is another question.
"""

from __future__ import annotations

from collections.abc import Sequence

import topologies
from bench.tables.rows import Table
from engine.advice.answer import answer
from engine.advice.assess import assess
from engine.advice.changes import ranked, told_once
from engine.advice.values import Answer, Assessment
from engine.domain.cluster import ClusterSpec, DeviceSpec
from engine.domain.spec import RunSpec
from engine.domain.units import human_s
from engine.domain.workload import Workload
from engine.models import catalogue

CLUSTERS = ("lab-3", "lab-4", "gigabit-4", "equal-6")
MODELS = ("gpt2", "smollm2-360m", "tinyllama-1.1b")
WORK = {
    "16 tokens": Workload(prompt_tokens=8, new_tokens=16),
    "a prompt of 64": Workload(prompt_tokens=64, new_tokens=1),
}
STRATEGIES = ("single", "gpipe", "megatron", "voltage", "edgeshard")
OLD_HALF_ROWS = 24.0
OLD_MESSAGE_S = {"raspberry-pi-4": 300e-6, "raspberry-pi-5": 150e-6}


def measure_conclusions() -> Table:
    rows = []
    for name in CLUSTERS:
        now = topologies.load(name)
        for model in MODELS:
            for words, work in WORK.items():
                before, after = (ask(cluster, model, work) for cluster in (as_before(now), now))
                changed = "changed" if before.yes != after.yes else ""
                rows.append((name, model, words, *_said(before), *_said(after), changed))
    columns = ("cluster", "model", "work", "one board before", "answer", "one board now", "answer", "")
    title = (
        "Does distributing pay? The time on the best single board, and how many times as fast the best of "
        f"{', '.join(STRATEGIES[1:])} is on several, with the presets as they were and as they are."
    )
    return Table(title, columns, tuple(rows))


def as_before(cluster: ClusterSpec) -> ClusterSpec:
    """The cluster with the presets' rates before they were compared with published ones."""
    return cluster.model_copy(update={"devices": tuple(map(_before, cluster.devices))})


def _before(device: DeviceSpec) -> DeviceSpec:
    update: dict[str, object] = {"format_rates": (), "half_rows": OLD_HALF_ROWS}
    for preset in topologies.presets():
        if preset.source == device.source and preset.name in OLD_MESSAGE_S:
            update |= {"message_overhead_s": OLD_MESSAGE_S[preset.name], "receive_overhead_s": 0.0}
    return device.model_copy(update=update)


def ask(cluster: ClusterSpec, name: str, work: Workload) -> Answer:
    model, weights = catalogue.resolve(name, "random")
    boards = tuple(device.model_copy(update={"memory_bytes": 1e12}) for device in cluster.devices)
    base = RunSpec(
        cluster=cluster.model_copy(update={"devices": boards}),
        model=model,
        weights=weights,
        strategy="single",
        workload=work,
    )
    rows = told_once(
        ranked([assess(base.model_copy(update={"strategy": each})) for each in STRATEGIES], "total_s")
    )
    return answer(base, rows, "total_s", _assess_all)


def _assess_all(specs: Sequence[RunSpec]) -> list[Assessment]:
    return [assess(spec) for spec in specs]


def _said(said: Answer) -> tuple[str, str]:
    gain = f"{'yes' if said.yes else 'no'}, {said.gain:.2f} times" if said.gain else "no"
    return human_s(said.alone or 0.0), gain
