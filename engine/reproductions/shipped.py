"""The experiment files of the papers' tables and figures, and the results that the project ships for them.

`experiments/NAME.toml` is one table or figure. `results/NAME.jsonl` has a row per point and world, with the
metrics that the experiment shows and the version of the code; `./loom reproduce --write` writes it.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path

from engine.domain.claim import Ended
from engine.domain.errors import SpecError
from engine.domain.experiment import Experiment
from engine.experiments.design.files import load_file
from engine.experiments.results.rows import Row
from engine.reproductions.figures import PAPERS

EXPERIMENTS = Path(__file__).parent / "experiments"
RESULTS = Path(__file__).parent / "results"
ALWAYS_KEPT = ("latency_s", "ttft_s", "tpot_s", "tokens_per_s", "link_bytes", "peak_memory_bytes")
"""Metrics of every shipped row, besides those that its experiment shows."""

OF_EMULATIONS = ("valid", "correct", "latency_error", "dilation")


@cache
def experiments() -> tuple[Experiment, ...]:
    """All shipped experiments, in the order of the papers, then of their names."""
    found = [load_file(path) for path in sorted(EXPERIMENTS.glob("*.toml"))]
    return tuple(sorted(found, key=lambda one: (PAPERS.index(one.paper), one.name)))


def experiment(name: str) -> Experiment:
    """The shipped experiment of this name. Raises `SpecError`, which names the known ones."""
    for one in experiments():
        if one.name == name:
            return one
    known = ", ".join(one.name for one in experiments())
    raise SpecError(f"there is no reproduction {name}: there are {known}.", [("name", f"unknown: {name}")])


def figure_ids(experiment: Experiment) -> tuple[str, ...]:
    """Ids of the published figures that an experiment covers: by a value or by a claim."""
    claimed = (one for claim in experiment.claims for one in claim.figures)
    return (*(value.id for value in experiment.published), *claimed)


def shown_metrics(experiment: Experiment) -> frozenset[str]:
    """Every metric that an experiment compares, claims or presents."""
    claims = (claim.metric for claim in experiment.claims if not isinstance(claim, Ended))
    presented = (one.metric for one in (*experiment.figures, *experiment.tables, *experiment.published))
    return frozenset((*presented, *claims, *ALWAYS_KEPT, *OF_EMULATIONS))


def shipped_rows(experiment: Experiment, folder: Path = RESULTS) -> tuple[Row, ...]:
    """The shipped results; none if the file is missing. Raises `SpecError` if it is wrong."""
    path = folder / f"{experiment.name}.jsonl"
    if not path.is_file():
        return ()
    lines = path.read_text(encoding="utf-8").splitlines()
    rows = []
    for index, line in enumerate(lines):
        try:
            rows.append(Row.model_validate_json(line))
        except ValueError as error:
            raise SpecError(f"{path.name}, line {index + 1}: is no result: {error}.") from error
    return tuple(rows)


def write_rows(experiment: Experiment, rows: Iterable[Row], folder: Path = RESULTS) -> None:
    """Replace the shipped results of an experiment by `rows`, with the metrics that it shows."""
    kept = shown_metrics(experiment)
    folder.mkdir(parents=True, exist_ok=True)
    lines = (
        row.model_copy(
            update={
                "metrics": {name: value for name, value in row.metrics.items() if name in kept},
                "stale": False,
                "run": "",
            }
        ).model_dump_json(exclude_defaults=True)
        for row in rows
    )
    (folder / f"{experiment.name}.jsonl").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
