"""Example traces of link rates: made from a formula, taken by `--scenario`."""

from pathlib import Path

import pytest

from engine.domain.errors import SpecError
from engine.recorded.scenarios import parse_trace, read_scenario
from topologies.files import load
from topologies.traces import BASE_BIT_PER_S, DURATION_S, FOLDER, LINK, TRACES, rows_of


@pytest.mark.parametrize("name", TRACES)
def test_a_trace_is_what_its_formula_gives_and_fits_the_example_cluster(name):
    path = FOLDER / f"{name}.csv"
    assert path.read_text().splitlines() == list(rows_of(name))
    scenario = read_scenario(str(path))
    scenario.check(load("lab-4"))
    assert {change.link for change in scenario.changes} == {LINK}
    assert all(0 < change.bit_per_s <= BASE_BIT_PER_S for change in scenario.changes)
    assert scenario.changes[-1].at_s < DURATION_S


def test_a_trace_may_set_one_direction_and_come_in_any_order():
    scenario = parse_trace("at_s,link,bit_per_s,direction\n2,a--b,1e6,forward\n1,a--b,2e6,\n", "x.csv")
    assert [(c.at_s, c.bit_per_s, c.direction) for c in scenario.changes] == [
        (1.0, 2e6, "both"),
        (2.0, 1e6, "forward"),
    ]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("time,rate\n1,2\n", "columns are"),
        ("at_s,link,bit_per_s\n1,a--b,-5\n", "bit_per_s"),
        ("at_s,link,bit_per_s\nsoon,a--b,5\n", "at_s"),
        ("", "columns are"),
    ],
)
def test_a_bad_trace_is_refused_with_its_fault(text, complaint):
    with pytest.raises(SpecError, match=complaint):
        parse_trace(text, str(Path("x.csv")))
