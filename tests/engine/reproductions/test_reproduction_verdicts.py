"""How near ours is to a published figure, and what the figures of an experiment come to."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.domain.experiment import Experiment
from engine.domain.presented import Published
from engine.experiments.results.published import PublishedRow
from engine.experiments.results.rows import Row
from engine.reproductions.figures import figures
from engine.reproductions.shipped import experiment, shipped_rows, write_rows
from engine.reproductions.summary import counted
from engine.reproductions.verdicts import Reason, figure_verdicts, nearness, reason_of, remarks


def row(ours: float | None, deviation: float | None, published: float = 2.0, **more: object) -> PublishedRow:
    return PublishedRow.model_validate(
        {
            "id": "x",
            "where": "Table 1",
            "metric": "total_s",
            "unit": "",
            "coordinates": {},
            "world": "simulated",
            "bound": "equal",
            "published": published,
            "ours": ours,
            "deviation": deviation,
            **more,
        }
    )


@pytest.mark.parametrize(
    ("published", "ours", "relation", "expected"),
    [
        (2.0, 2.19, "speedup", "within 10 %"),
        (2.0, 1.81, "value", "within 10 %"),
        (2.0, 2.21, "speedup", "within 30 %"),
        (2.0, 1.39, "speedup", "direction holds"),
        (2.0, 1.39, "value", "does not hold"),
        (2.0, 0.99, "speedup", "does not hold"),
        (1.2, 1.015, "ratio", "does not hold"),  # nearer than 30 %, but no effect
        (1.2, 1.03, "ratio", "within 30 %"),
        (1.05, 0.98, "ratio", "within 10 %"),
        (0.3, 0.2, "reduction", "direction holds"),
        (0.3, -0.2, "reduction", "does not hold"),
    ],
)
def test_nearness_is_by_ours_over_published_and_by_the_side_of_the_baseline(
    published: float, ours: float, relation: str, expected: str
) -> None:
    assert nearness(row(ours, ours / published - 1, published), relation) == expected


def test_a_figure_without_a_run_is_not_known_and_one_whose_run_has_no_plan_does_not_hold() -> None:
    assert nearness(row(None, None), "ratio") == "not known"
    assert nearness(row(None, None, outcomes=("no_plan",)), "ratio") == "does not hold"
    ended = {"published": None, "published_outcome": "no_plan", "outcomes": ("no_plan",)}
    assert nearness(row(None, None, agrees=True, **ended), "value") == "within 10 %"


def voltage(total_s: dict[tuple[str, int], float], model: str = "BERT-Large") -> list[Row]:
    return [
        Row(
            coordinates={"model": model, "strategy": strategy, "machines": machines},
            seed=0,
            world="simulated",
            digest=f"{strategy}{machines}",
            outcome="finished",
            metrics={"total_s": seconds, "compute_s": 0.1},
            code_version="1",
        )
        for (strategy, machines), seconds in total_s.items()
    ]


ROWS = voltage({("single", 1): 1.0, ("voltage", 6): 0.75, ("megatron", 2): 1.5, ("megatron", 6): 0.9})


def test_values_and_claims_get_a_verdict_each() -> None:
    found = {one.id: one for one in figure_verdicts(experiment("voltage-fig4"), ROWS)}
    value, claim = found["voltage.fig4.BERT-Large-Uncased"], found["voltage.fig4.tp"]
    assert (value.published, value.ours, value.verdict) == ("27.9 %", "25 %", "within 30 %")
    assert value.what == "BERT-Large, voltage, 6 machines" and value.fitted
    assert claim.verdict in ("direction holds", "does not hold") and not claim.fitted
    assert found["voltage.fig4.ViT"].verdict == "not known"
    assert counted(found.values()) == {"within 30 %": 1, claim.verdict: 1, "not known": 3}


def test_shipped_rows_come_back_with_the_metrics_that_are_shown(tmp_path: Path) -> None:
    one = experiment("voltage-fig4")
    write_rows(one, ROWS, tmp_path)
    back = shipped_rows(one, tmp_path)
    assert [(found.digest, found.metrics) for found in back] == [
        (given.digest, {"total_s": given.metrics["total_s"]}) for given in ROWS
    ]
    assert shipped_rows(experiment("voltage-fig5"), tmp_path) == ()


def test_every_reason_and_every_fitted_pattern_stands_for_some_figure() -> None:
    patterns = [*remarks().fitted, *(one for reason in remarks().reason for one in reason.figures)]
    for pattern in patterns:
        chosen = [one for one in figures() if reason_matches(pattern, one)]
        assert chosen, pattern


def reason_matches(pattern: str, figure_id: str) -> bool:
    from fnmatch import fnmatchcase

    return fnmatchcase(figure_id, pattern)


def test_a_reason_is_shown_only_where_a_figure_is_off(monkeypatch: pytest.MonkeyPatch) -> None:
    from engine.reproductions import verdicts

    why = Reason(figures=("voltage.*",), reason="Because.", looked="Looked.")
    monkeypatch.setattr(verdicts, "reason_of", lambda figure_id: why)
    near = figure_verdicts(only_bert(), ROWS)[0]
    far = figure_verdicts(only_bert(), voltage({("single", 1): 1.0, ("voltage", 6): 0.98}))[0]
    assert (near.reason, far.reason) == ("", "Because. Looked.")
    assert reason_of("mcu_tp.nothing") is None


def only_bert() -> Experiment:
    one = experiment("voltage-fig4")
    first: Published = one.published[0]
    return one.model_copy(update={"published": (first,), "claims": ()})
