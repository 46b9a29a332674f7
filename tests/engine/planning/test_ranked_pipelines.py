"""The few pipelines that are played are those that matter: EdgeShard's own sums put the best among them."""

import pytest

from bench.strategies.plans import METHODS, draw
from engine.domain.errors import EdgeLoomError
from engine.runs.predict import predict
from engine.strategies.planner import pipelines
from tests.support.parameter_cases import with_params

CLOSE = 1.01
CASES = 3
TURNS = len(METHODS)


@pytest.mark.parametrize("name", ["gpipe", "edgeshard"])
def test_playing_all_pipelines_would_find_none_that_is_faster_by_more_than_a_hundredth(name, monkeypatch):
    few = pipelines.PLAYED
    compared, index = 0, METHODS.index(name)
    while compared < CASES:
        spec, index = with_params(draw(index)[0], planner="best"), index + TURNS
        if spec.workload.requests == 1:
            continue
        monkeypatch.setattr(pipelines, "PLAYED", few)
        try:
            few_s = predict(spec).latency_s
        except EdgeLoomError:
            continue
        monkeypatch.setattr(pipelines, "PLAYED", (10**6, 0))
        assert few_s <= CLOSE * predict(spec).latency_s, spec.name
        compared += 1
