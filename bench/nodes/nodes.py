"""`./loom bench nodes`: runs on boards that namespaces of this machine play, beside their predictions."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from bench.nodes.cases import NEW_TOKENS, PROMPT_TOKENS, REQUESTS, Case, Compared, Figures, three
from bench.tables.rows import Table
from bench.trials.isolated import found_by
from engine.domain.units import human, human_s

FIELDS = (("total_s", "whole"), ("first_s", "first token"), ("later_s", "later tokens"))


def measure_nodes() -> Table:
    """Runs on two boards and on four, as root. Raises `OpsError` if it broke off."""
    found = found_by("bench.nodes.play").rows_unless("With boards something went wrong")
    return nodes_table([_read(json.loads(text)) for (text,) in found])


def _read(data: dict[str, Any]) -> Compared:
    drawn, predicted, measured = (Figures(*data[name]) for name in ("drawn", "predicted", "measured"))
    return Compared(Case(*data["case"]), drawn, predicted, measured, data["links"])


def nodes_table(found: Sequence[Compared]) -> Table:
    rows = [
        (
            str(len(one.case.boards)),
            human(one.case.bit_per_s, "bit/s"),
            one.links,
            one.case.model,
            one.case.method,
            human_s(one.predicted.total_s),
            human_s(one.measured.total_s),
            *(f"{one.off(field):+.1%}" for field, _ in FIELDS),
        )
        for one in found
    ]
    columns = ("boards", "cables", "measured links", "model", "method", "predicted", "measured")
    title = (
        f"A request of {PROMPT_TOKENS} tokens and {NEW_TOKENS} new ones on boards: medians of the "
        f"{REQUESTS - 1} requests after the first, and how far the prediction is off, with the rows that the "
        "boards measured of themselves and the links as the run has measured them"
    )
    raw = json.dumps([one._asdict() for one in found], indent=1)
    return Table(
        title, (*columns, *(name for _, name in FIELDS)), tuple(rows), summary=_summary(found), raw=raw
    )


def _summary(found: Sequence[Compared]) -> Table:
    rows = []
    for boards in dict.fromkeys(len(one.case.boards) for one in found):
        these = [one for one in found if len(one.case.boards) == boards]
        for field, name in FIELDS:
            rows.append((str(boards), str(len(these)), name, *three(one.off(field) for one in these)))
    columns = ("boards", "runs", "time", "median", "95 %", "worst")
    return Table("How far predictions are off what boards took.", columns, tuple(rows))
