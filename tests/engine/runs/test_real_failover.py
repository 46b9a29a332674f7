"""A killed device in the real world, on loopback: the ways that methods have of their own, and a new plan."""

import pytest

from engine.domain.report import RunReport
from engine.domain.scenario import DropDevice, Scenario
from engine.models import catalogue
from engine.runs.predict import predict
from tests.support.adaptlink_cases import tight
from tests.support.disturbed_runs import came_before, played_in_time
from tests.support.small_cases import plan_of, spec_of, star

NEW_TOKENS = 8
RATES = (4e8, 1e8, 2.5e8, 2e8)


def with_loss(spec, device, early=False):
    """`device` is killed in the middle of the run, or (`early`) of its prefill."""
    expected = predict(spec)
    at_s = (expected.ttft_s if early else expected.latency_s) / 2
    drop = DropDevice(at_s=at_s, device=device)
    return spec.model_copy(update={"scenario": Scenario(changes=(drop,))})


DILATION = 20.0
"""So slow that a device is mostly killed within the part of a run in which it is to be."""


def real(spec, weights):
    return spec.model_copy(update={"weights": weights, "dilation": DILATION})


def own_way(strategy):
    model, weights = catalogue.resolve("tiny-gpt2")
    if strategy == "adaptlink":
        spec = real(tight(model, 0.3, rates=RATES, new_tokens=NEW_TOKENS), weights)
        return with_loss(spec, f"d{plan_of(spec).layout.shards[1][0]}")
    params = {"t_max_mode": "none", "scheduling": "static"}  # with which every neighbour gets heads
    spec = real(spec_of(strategy, model, star(RATES[:3]), new_tokens=NEW_TOKENS, **params), weights)
    assert plan_of(spec).layout.blocks == ((0, 0, model.num_layers),)
    return with_loss(spec, "d1")


def planned_again(strategy):
    model, weights = catalogue.resolve("tiny-llama")
    params = {"mode": "exact"} if strategy == "lime" else {}  # with which every device has layers
    spec = real(spec_of(strategy, model, star(RATES[:3]), new_tokens=NEW_TOKENS, **params), weights)
    return with_loss(spec, "d2", early=strategy in EARLY)


EARLY = ("voltage",)
"""After the prefill its source is on its own."""
OWN_WAYS = ("adaptlink", "edgeformer")
PLANNED_AGAIN = ("lime", "galaxy", "tpi_llm", "voltage", "mcu")


@pytest.fixture(scope="module")
def runs(play_for_real):
    """Reports and marks by strategy."""
    specs = {name: own_way(name) for name in OWN_WAYS} | {name: planned_again(name) for name in PLANNED_AGAIN}

    def is_in_time(name, answer):
        return came_before(answer, "device_lost", "token_emitted") or name not in EARLY

    return {
        name: (RunReport.parse(answer["report"], name), [e for e in answer["trace"] if e["type"] == "mark"])
        for name, answer in played_in_time(play_for_real, specs, is_in_time).items()
    }


def names_of(marks):
    return [mark["name"] for mark in marks]


@pytest.mark.parametrize("name", [*OWN_WAYS, *PLANNED_AGAIN])
def test_after_the_failure_all_tokens_come_and_are_those_of_one_device(name, runs):
    report, marks = runs[name]
    assert report.outcome.kind == "finished", report.outcome.sentence
    assert len(report.output_tokens) == NEW_TOKENS
    assert report.correctness.token_identical, report.correctness.why
    assert names_of(marks).count("loss_detected") == 1
    lost_s = next(mark["time_s"] for mark in marks if mark["name"] == "device_lost")
    last_s = max(mark["time_s"] for mark in marks if mark["name"] == "token_emitted")
    assert lost_s < last_s


def test_adaptlinks_backup_takes_the_place_of_a_killed_secondary_without_a_new_plan(runs):
    _, marks = runs["adaptlink"]
    (promoted,) = [mark for mark in marks if mark["name"] == "promoted"]
    assert promoted["facts"]["epoch"] == 1
    assert "replanned" not in names_of(marks)


def test_edgeformers_owner_goes_on_with_the_heads_of_a_killed_neighbour_without_a_new_plan(runs):
    _, marks = runs["edgeformer"]
    assert "replanned" not in names_of(marks)
    assert {"heads_recomputed", "reallocated"} & set(names_of(marks))
    heads = [mark["facts"] for mark in marks if mark["name"] == "heads"]
    assert any(1 in facts["device_of"] for facts in heads)
    last = {facts["layer"]: facts["device_of"] for facts in heads}
    assert not any(1 in device_of for device_of in last.values())


@pytest.mark.parametrize("name", PLANNED_AGAIN)
def test_methods_without_a_way_of_their_own_get_one_new_plan_over_the_survivors(name, runs):
    _, marks = runs[name]
    (replanned,) = [mark for mark in marks if mark["name"] == "replanned"]
    assert {work["device"] for work in replanned["facts"]["plan"]["work"]} <= {0, 1}
