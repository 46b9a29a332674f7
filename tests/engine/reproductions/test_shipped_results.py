"""The results that come with the project: complete, with reasons, and what the code computes today."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

import topologies
from engine.domain.quantity import Coordinates
from engine.experiments.design.expand import Point, expand
from engine.experiments.design.sources import Sources
from engine.experiments.results.metrics import metrics_of
from engine.reproductions.figures import figures, papers
from engine.reproductions.shipped import experiment, experiments, shipped_rows
from engine.reproductions.summary import reproductions, verdicts_of
from engine.runs.predict import predict

DOCUMENT = Path(__file__).parents[3] / "docs" / "results" / "reproductions.md"
NAMES = [one.name for one in experiments()]
SAMPLE: list[tuple[str, Coordinates, str]] = [
    ("voltage-fig4", {"model": "BERT-Large", "strategy": "voltage", "machines": 6}, "total_s"),
    ("voltage-fig5", {"strategy": "single", "rate": 4e8}, "total_s"),
    ("edgeformer-table3", {"variant": "full", "text": "WiC", "gpu": "135 GFLOP/s"}, "first_token_s"),
    ("lime-table5", {"testbed": "E3, sporadic", "variant": "LIME"}, "per_token_s"),
    (
        "adaptlink-table1",
        {"model": "llava-7b", "strategy": "Edge-Only", "network": "10 Gbit/s"},
        "tokens_per_s",
    ),
    ("mcu-blocks", {"case": "MobileBERT", "chips": 4}, "method.plans.0.blocks.0.estimate.paper_s"),
]


@cache
def points(name: str) -> tuple[Point, ...]:
    return expand(experiment(name), Sources(topologies.load, topologies.preset))


@pytest.mark.parametrize("name", NAMES)
def test_every_point_has_a_shipped_result(name: str) -> None:
    digests = {row.digest for row in shipped_rows(experiment(name)) if row.world == "simulated"}
    missing = [point.coordinates for point in points(name) if point.digest not in digests]
    assert missing == [], "run ./loom reproduce --write"
    assert digests == {point.digest for point in points(name)}


@pytest.mark.parametrize("name", NAMES)
def test_every_published_figure_has_a_verdict_and_a_reason_where_it_is_off(name: str) -> None:
    found = [one for one in verdicts_of(name) if one.world == "simulated"]
    assert {one.verdict for one in found} <= {
        "within 10 %",
        "within 30 %",
        "direction holds",
        "does not hold",
    }
    off = [one for one in found if one.verdict in ("direction holds", "does not hold")]
    assert [one.id for one in off if not one.reason] == []
    assert [one.id for one in found if one.reason and one not in off] == []


@pytest.mark.parametrize(("name", "coordinates", "metric"), SAMPLE, ids=[one[0] for one in SAMPLE])
def test_a_shipped_result_is_what_the_code_computes(name: str, coordinates: Coordinates, metric: str) -> None:
    point = next(one for one in points(name) if one.coordinates == coordinates)
    shipped = next(row for row in shipped_rows(experiment(name)) if row.digest == point.digest)
    assert point.spec is not None
    assert metrics_of(predict(point.spec))[metric] == pytest.approx(shipped.metrics[metric], rel=1e-3)


def test_voltage_on_six_emulated_machines_saves_what_it_is_predicted_and_published_to_save() -> None:
    """Figure 4: 27.9, 29.1 and 32.1 % less latency than one machine at 500 Mbit/s."""
    emulated = [row for row in shipped_rows(experiment("voltage-fig4")) if row.world == "emulated"]
    assert all(row.metrics["valid"] == row.metrics["correct"] == 1 for row in emulated)
    latency_s = {tuple(row.coordinates.values()): row.metrics["total_s"] for row in emulated}
    for model, published in (("BERT-Large", 27.9), ("ViT", 29.1), ("GPT-2", 32.1)):
        saved = 100 * (1 - latency_s[model, "voltage", 6] / latency_s[model, "single", 1])
        assert saved == pytest.approx(published, abs=2)
        tensor_parallel_s = latency_s.get((model, "megatron", 6))
        assert tensor_parallel_s is None or tensor_parallel_s > latency_s[model, "single", 1]


def test_the_summary_counts_every_figure_once() -> None:
    found = reproductions()
    for one in found.papers:
        assert one.figures == one.in_experiments + one.checked + one.left_out
        assert sum(one.counts.values()) == one.in_experiments
    assert sum(one.figures for one in found.papers) == len(figures()) == 1034
    assert [one.paper for one in found.papers] == [one.paper for one in papers()]
    assert {one.name for one in found.experiments} == set(NAMES)
    in_rules = sum(one.figures for one in found.others)
    assert in_rules == sum(one.checked + one.left_out for one in found.papers)


def test_the_document_has_every_experiment_with_its_version_of_the_code() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    for one in experiments():
        assert f"### {one.name}\n" in text
        versions = {row.code_version for row in shipped_rows(one) if row.code_version}
        assert all(version in text for version in versions)
    assert all(assumption in text for one in experiments() for assumption in one.assumptions)
