"""Every published figure has one place: an experiment file, a test, or a reason to leave it out."""

import json
from pathlib import Path

import pytest

from engine.reproductions.coverage import figures_of, left_for_experiments, problems, rules
from engine.reproductions.figures import PAPERS, Paper, figures, paper, papers
from engine.reproductions.headlines import FIGURE
from engine.reproductions.summary import reproductions

ROOT = Path(__file__).parents[3]


def test_all_figures_of_the_five_papers_are_there_each_with_its_place() -> None:
    counts = {one.paper: len(one.figures) for one in papers()}
    assert counts == {"voltage": 14, "edgeformer": 859, "lime": 79, "adaptlink": 40, "mcu": 46}
    assert sum(counts.values()) == len(figures()) == 1038
    assert "1,038 published figures" in (ROOT / "README.md").read_text("utf-8")
    assert all(figure.where and figure.metric and figure.unit for figure in figures().values())


def test_the_first_page_counts_what_is_confirmed() -> None:
    found = reproductions().papers
    text = " ".join((ROOT / "README.md").read_text("utf-8").split())
    compared, confirmed = sum(one.compared for one in found), sum(one.confirmed for one in found)
    assert f"of the {compared} that are compared independently {confirmed} is confirmed" in text


def test_a_paper_says_what_it_is_and_which_method_it_describes() -> None:
    from engine.strategies.registry import STRATEGIES

    methods = {chosen.name for chosen in STRATEGIES}
    assert all(one.paper == name and one.source for name, one in zip(PAPERS, papers(), strict=True))
    assert {one.strategy for one in papers()} <= methods


def test_two_figures_with_one_id_are_refused() -> None:
    data = json.loads(paper("voltage").model_dump_json())
    data["figures"].append(data["figures"][0])
    with pytest.raises(ValueError, match=r"voltage\.abs\.reduction is there twice"):
        Paper.model_validate(data)


def test_every_pattern_of_a_rule_stands_for_some_figure() -> None:
    for rule in rules():
        for pattern in rule.figures:
            assert figures_of(rule.model_copy(update={"figures": (pattern,)})), pattern


def test_no_figure_is_under_two_rules() -> None:
    assert problems(left_for_experiments()) == ()


def test_a_figure_in_no_place_in_two_places_or_of_no_paper_is_named() -> None:
    placed = [*left_for_experiments(), "voltage.fig5.v200", "lime.tab4.E1.agx_orin_32gb", "lime.tab9.x"]
    placed.remove("voltage.fig4.tp")
    assert problems(placed) == (
        "lime.tab9.x: no paper has such a figure",
        "voltage.fig4.tp: is in 0 places, and must be in one",
        "voltage.fig5.v200: is in 2 places, and must be in one",
        "lime.tab4.E1.agx_orin_32gb: is in 2 places, and must be in one",
    )


def test_the_files_are_one_figure_a_line() -> None:
    for name in PAPERS:
        text = (ROOT / f"engine/reproductions/published/{name}.json").read_text("utf-8")
        assert sum(line.startswith('  {"id"') for line in text.splitlines()) == len(paper(name).figures)


def test_every_paper_says_what_its_reader_must_know_in_ten_sentences_at_most() -> None:
    known = {one.paper: one.must_know for one in reproductions().papers}
    for name, sentences in known.items():
        assert 3 <= len(sentences) <= 10, name
        for sentence in sentences:
            assert sentence.endswith((".", ")")) and not FIGURE.search(sentence), sentence
    assert any("5.73 s (published: 7.53 s)" in sentence for sentence in known["edgeformer"])
