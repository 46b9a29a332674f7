"""Estimates rank the shares of which the judge plays some: on random clusters they agree with it."""

from itertools import permutations

import pytest

from bench.strategies.plans import METHODS, draw
from engine.domain.errors import EdgeLoomError
from engine.planning.search import HOPELESS, TRIED, fastest_shares
from engine.runs.predict import prepare
from engine.strategies.planner import search
from tests.support.parameter_cases import with_params

RUNS, COMPARED = 12, 16
CLOSE, AGREE = 1.02, 0.92
APART = 1.2


def alike(spec):
    """The run on devices as fast as the fastest, where messages decide."""
    fastest = max(spec.cluster.devices, key=lambda device: device.flop_per_s)
    speeds = {name: getattr(fastest, name) for name in ("flop_per_s", "memory_byte_per_s")}
    devices = tuple(device.model_copy(update=speeds) for device in spec.cluster.devices)
    return spec.model_copy(update={"cluster": spec.cluster.model_copy(update={"devices": devices})})


def searches(name, monkeypatch):
    """Of some random runs, every other one on devices that are alike, the shares from which a search begins
    with their judged and estimated seconds, the most promising first.
    """
    begun = []

    def kept(starts, order, steps, estimate_s, seconds, fits, sure=()):
        ranked = sorted(filter(fits, {*starts, *sure}), key=estimate_s)[:COMPARED]
        if ranked:
            begun.append([(seconds(shares), estimate_s(shares)) for shares in ranked])
        return fastest_shares(starts, order, steps, estimate_s, seconds, fits, sure)

    monkeypatch.setattr(search, "fastest_shares", kept)
    index = METHODS.index(name)
    while len(begun) < RUNS:
        spec, index = with_params(draw(index)[0], planner="best"), index + len(METHODS)
        try:
            prepare(alike(spec) if len(begun) % 2 else spec)
        except EdgeLoomError:
            continue
    return begun


@pytest.mark.parametrize("name", ["voltage", "megatron", "deepspeed", "galaxy"])
def test_the_fastest_start_is_among_those_that_are_played_and_others_come_in_their_order(name, monkeypatch):
    agree = number = 0
    for starts in searches(name, monkeypatch):
        best_s, estimated_s = min(starts)
        assert min(starts[:TRIED])[0] <= CLOSE * best_s
        assert estimated_s <= HOPELESS * best_s
        for (first_s, first), (other_s, other) in permutations(starts, 2):
            if other_s > APART * first_s:
                agree, number = agree + (first < other), number + 1
    assert agree >= AGREE * number
