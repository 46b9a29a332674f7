"""Why two runs cannot simply be compared: what was asked of them differs, or their times are not valid."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from engine.domain.report import RunReport
from engine.domain.values import Value
from engine.domain.workload import Workload

SIZES = {
    "new_tokens": "new tokens",
    "prompt_tokens": "tokens of the prompt",
    "requests": "requests",
    "pattern": "arrivals",
    "rate_per_s": "requests a second",
    "users": "users",
    "max_batch": "requests served together",
    "scheduler": "scheduler",
    "chunk_tokens": "rows of a step",
}


class Caution(Value):
    """Why a run's figures cannot simply be set against the baseline's, in one sentence.

    Where it `decides`, a difference of the figures does not say which run is better; another seed is only
    worth a word.
    """

    kind: Literal["outcome", "fidelity", "baseline_fidelity", "model", "numbers", "workload", "seed", "world"]
    sentence: str
    decides: bool = True


def cautions_of(report: RunReport, baseline: RunReport) -> tuple[Caution, ...]:
    return tuple(_cautions(report, baseline))


def _cautions(report: RunReport, base: RunReport) -> Iterator[Caution]:
    own, other = report.spec, base.spec
    if report.outcome.kind != "finished":
        yield Caution(kind="outcome", sentence=f"This run {report.outcome.in_words}.")
    if report.fidelity.valid is False:
        yield Caution(kind="fidelity", sentence="The times of this run are not valid: see its report.")
    if base.fidelity.valid is False:
        named = f", {other.name}," if other.name else ""
        sentence = f"The times of the baseline{named} are not valid: see its report."
        yield Caution(kind="baseline_fidelity", sentence=sentence)
    if own.model.name != other.model.name:
        yield Caution(kind="model", sentence=f"{own.model.name} here, {other.model.name} in the baseline.")
    if own.model.dtype != other.model.dtype:
        numbers = f"{own.model.dtype} here, {other.model.dtype} in the baseline."
        yield Caution(kind="numbers", sentence=numbers)
    difference = _difference(own.workload, other.workload)
    if difference:
        yield Caution(kind="workload", sentence=difference)
    if report.world != base.world:
        sentence = f"This run is {report.world}, the baseline {base.world}."
        yield Caution(kind="world", sentence=sentence, decides=False)
    if own.seed != other.seed:
        seeds = f"Seed {own.seed} here, {other.seed} in the baseline."
        yield Caution(kind="seed", sentence=seeds, decides=False)


def _difference(own: Workload, other: Workload) -> str:
    """A sentence with the sizes in which two workloads differ; "" if none of the fields does."""
    if own == other:
        return ""
    pairs = {name: (getattr(own, field), getattr(other, field)) for field, name in SIZES.items()}
    told = [
        f"{here} {name} here, {there} in the baseline"
        for name, (here, there) in pairs.items()
        if here != there and None not in (here, there)
    ]
    return f"{'; '.join(told)}." if told else "The workload differs from the baseline's."
