"""The cards of LIME's testbeds say of its lead, with the least memory that holds the model, what the shipped
results say.
"""

import re
from collections import defaultdict

import pytest

import topologies
from engine.reproductions.shipped import experiment, shipped_rows

RATE = 200e6


def leads(testbed: str) -> list[float]:
    """The shortest time per token of all others over LIME's: one at a time and bursts, 96 and 320 tokens."""
    times_s = defaultdict[tuple[str, object], dict[str, float]](dict)
    for row in shipped_rows(experiment("lime-environments")):
        at = row.coordinates
        where, _, pattern = str(at["testbed"]).partition(", ")
        if (where, at["rate"], row.world, row.outcome) == (testbed, RATE, "predicted", "finished"):
            times_s[pattern, at["length"]][str(at["strategy"])] = row.metrics["tpot_s"]
    assert len(times_s) == 4
    return [
        min(time_s for name, time_s in found.items() if name != "lime") / found["lime"]
        for found in times_s.values()
    ]


@pytest.mark.parametrize("testbed", ["E1", "E2", "E3"])
def test_a_card_says_by_how_much_lime_leads_and_how_much_less_others_take(testbed: str) -> None:
    _, _, said = topologies.load(f"papers/lime-{testbed.lower()}").description.partition("as in lime-env")
    found = leads(testbed)
    assert set(re.findall(r"(\d+) %", said)) == {f"{100 * (lead - 1):.0f}" for lead in found if lead > 1}
    less = [lead for lead in found if lead < 1]
    assert set(re.findall(r"0\.\d\d", said)) == {f"{min(less):.2f}", f"{max(less):.2f}"}
