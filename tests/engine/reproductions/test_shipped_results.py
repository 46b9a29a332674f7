"""The results that come with the project: complete, with reasons, and what the code computes today."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

import topologies
from engine.cli.document import as_csv
from engine.domain.spec import RunSpec
from engine.experiments.design.expand import Point, expand
from engine.experiments.design.sources import Sources
from engine.experiments.execution.point import attempt
from engine.experiments.results.rows import Row
from engine.reproductions.document import PICTURES, document, paper_pages
from engine.reproductions.figures import figures, papers
from engine.reproductions.shipped import experiment, experiments, shipped_rows
from engine.reproductions.summary import reproductions, verdicts_of

DOCUMENT = Path(__file__).parents[3] / "docs" / "results" / "reproductions.md"
NAMES = [one.name for one in experiments()]


@cache
def points(name: str) -> tuple[Point, ...]:
    return expand(experiment(name), Sources(topologies.load, topologies.preset))


@pytest.mark.parametrize("name", NAMES)
def test_every_point_of_an_experiment_is_a_run(name: str) -> None:
    assert [point.problem for point in points(name) if point.spec is None] == []


@pytest.mark.parametrize("name", NAMES)
def test_every_point_has_a_shipped_result(name: str) -> None:
    digests = {row.digest for row in shipped_rows(experiment(name)) if row.world == "predicted"}
    missing = [point.coordinates for point in points(name) if point.digest not in digests]
    assert missing == [], "run ./loom reproduce --write"
    assert digests == {point.digest for point in points(name)}


@pytest.mark.parametrize("name", NAMES)
def test_every_published_figure_has_a_state_and_says_why_where_that_is_not_near(name: str) -> None:
    found = [one for one in verdicts_of(name) if one.world == "predicted"]
    off = [one for one in found if one.state in ("direction", "contradicted")]
    assert [one.id for one in off if not one.cause] == []
    told = [one for one in found if one.state in ("input", "cannot be checked")]
    assert [one.id for one in (*off, *told) if not one.why] == []
    assert [one.id for one in found if one.why and one not in (*off, *told)] == []


def test_what_was_put_in_is_no_agreement_in_the_shipped_results() -> None:
    states = {one.id: one.state for name in NAMES for one in verdicts_of(name) if one.world == "predicted"}
    assert {states[f"edgeformer.fig11.{text}.k1"] for text in ("ReCoRD", "WiC")} == {"input"}, "the lengths"
    assert states["edgeformer.t2.OPT-1.3B.EdgeFormer.ReCoRD.spd"] == "input", "the rate of the network"
    assert states["adaptlink.tab1.adaptlink.llava-7b.speedup"] == "input"
    assert {states[f"lime.vc.setting{n}.galaxy"] for n in (1, 2, 3)} == {"input"}, "85 % of the memory"
    assert states["lime.vc.setting3.edgeshard"] == "input", "with all memory of 2^30 bytes a GB it has a plan"
    assert states["adaptlink.bw.threshold"] == "contradicted", "1.81 Gbit/s for 1.2"
    assert states["adaptlink.tab1.cloud-only.llava-34b.throughput"] == "input", "the server's rate and uplink"
    assert states["adaptlink.tab1.adaptlink.llava-34b.throughput"] == "input", "8 bits of a weight"
    assert {states[f"edgeformer.fig6.dev{n}"] for n in (1, 2, 3)} == {"input"}, "sizes of table 1"
    assert {states[f"lime.vc.setting{n}.tpi-llm_sporadic"] for n in (1, 2, 3)} == {"input"}, "the disks' rate"
    assert states["mcu_tp.mb4.speedup"] == "near", "4.16 moves by a twenty-fifth with a fifth of the rates"
    assert states["mcu_tp.mb4.energy"] == "contradicted", "what leaves no chip costs no joules"
    assert states["lime.abs.speedup.sporadic"] == "cannot be checked", (
        "it depends on the length of the answers"
    )
    assert not any(states[one] == "confirmed" for one in states if one.startswith("edgeformer.fig13"))


QUICK_S = 0.5
"""What a run takes at most, by its shipped row, that is computed again whenever the tests run."""


@cache
def quickest(name: str) -> dict[tuple[str, str], tuple[Row, RunSpec]]:
    """The run of an experiment that took least, by method and outcome."""
    specs = {point.digest: point.spec for point in points(name)}
    found = {}
    for row in sorted(shipped_rows(experiment(name)), key=lambda row: -row.wall_s):
        spec = specs[row.digest]
        if row.world == "predicted" and spec is not None:
            found[spec.strategy, row.outcome] = row, spec
    return found


def is_long(kind: tuple[str, str], row: Row) -> bool:
    """Whether a run takes longer, and one of the same method and outcome in another experiment does not."""
    least_s = min(quickest(name)[kind][0].wall_s for name in NAMES if kind in quickest(name))
    return row.wall_s > max(QUICK_S, least_s)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "long", [False, pytest.param(True, marks=pytest.mark.long("engine", "topologies"))], ids=["quick", "long"]
)
def test_shipped_results_are_what_the_code_computes(name: str, long: bool) -> None:
    """The quickest run of every method with each outcome, all metrics: a table is no older than the code."""
    assert quickest(name)
    for (strategy, outcome), (row, spec) in quickest(name).items():
        if is_long((strategy, outcome), row) == long:
            now = attempt(spec, row.digest, "predicted")
            assert now.outcome == outcome, strategy
            assert {name: now.metrics.get(name) for name in row.metrics} == pytest.approx(
                row.metrics, rel=1e-6
            )


def test_voltage_on_six_emulated_machines_saves_what_it_is_predicted_and_published_to_save() -> None:
    """Figure 4: 27.9, 29.1 and 32.1 % less latency than one machine at 500 Mbit/s."""
    emulated = [row for row in shipped_rows(experiment("voltage-fig4")) if row.world == "emulated"]
    assert all(row.metrics["valid"] == row.metrics["correct"] == 1 for row in emulated)
    latency_s = {tuple(row.coordinates.values()): row.metrics["latency_s"] for row in emulated}
    for model, published in (("BERT-Large", 27.9), ("ViT", 29.1), ("GPT-2", 32.1)):
        saved = 100 * (1 - latency_s[model, "voltage", 6] / latency_s[model, "single", 1])
        assert saved == pytest.approx(published, abs=2)
        tensor_parallel_s = latency_s.get((model, "megatron", 6))
        assert tensor_parallel_s is None or tensor_parallel_s > latency_s[model, "single", 1]


def test_the_summary_counts_every_figure_once() -> None:
    found = reproductions()
    for one in found.papers:
        assert one.figures == one.in_experiments + one.put_in + one.checked + one.repeats + one.left_out
    assert sum(one.figures for one in found.papers) == len(figures()) == 1038
    assert [one.paper for one in found.papers] == [one.paper for one in papers()]
    assert {one.name for one in found.experiments} == set(NAMES)
    for one in found.experiments:
        assert sum(one.counts.values()) + one.repeats == one.figures
    states = [one.counts for one in (*found.experiments, *found.others)]
    for state in ("confirmed", "contradicted"):
        counted = sum(counts.get(state, 0) for counts in states)
        assert sum(getattr(one, state) for one in found.papers) == counted


def test_the_pages_of_papers_have_every_experiment_with_its_version_of_the_code() -> None:
    pages = {one.paper: written(f"{one.paper}.md") for one in papers()}
    for one in experiments():
        text = pages[one.paper]
        assert f"## {one.name}\n" in text
        versions = {row.code_version for row in shipped_rows(one) if row.code_version}
        assert all(version in text for version in versions)
        assert all(assumption in text for assumption in one.assumptions)


def test_the_documents_are_what_code_writes_of_the_shipped_results() -> None:
    pictures: dict[str, list[str]] = {}
    for one in experiments():
        drawn = [f"{one.name}-{figure.name}.svg" for figure in one.figures if figure.kind == "lines"]
        assert all((DOCUMENT.parent / PICTURES / name).is_file() for name in drawn)
        pictures |= {one.name: drawn} if drawn else {}
    overview = DOCUMENT.read_text(encoding="utf-8").partition("<!-- reproductions -->\n")[2]
    again = "run ./loom reproduce --write"
    assert overview.partition("\n<!-- end reproductions -->")[0] == document(), again
    for paper, page in paper_pages(pictures).items():
        assert written(f"{paper}.md") == page.text, again
        for name, table in page.tables.items():
            assert written(f"{paper}/{name}.csv") == as_csv(*table), again


def test_the_page_of_a_paper_counts_the_figures_of_an_experiment_as_the_overview_does() -> None:
    for one in reproductions().experiments:
        assert sum(one.counts.values()) + one.repeats == one.figures, one.name
        if one.figures:
            said = written(f"{one.paper}.md").partition(f"## {one.name}\n")[2].partition("Of ")[2]
            numbers = [int(number) for number in re.findall(r"\d+", said.partition(".")[0])]
            repeats = [one.repeats] if one.repeats else []
            assert numbers == [one.figures, *one.counts.values(), *repeats], one.name


def written(file: str) -> str:
    return (DOCUMENT.parent / PICTURES / file).read_text(encoding="utf-8")
