"""Random runs of every strategy against `transformers`, as `./loom fuzz` makes them."""

import itertools
from collections import Counter
from typing import get_args

import pytest
import torch

from bench.fuzz import check as checks
from bench.fuzz.campaign import Campaign, Ended, count
from bench.fuzz.check import check
from bench.fuzz.clusters import MAX_DEVICES
from bench.fuzz.draw import draw_spec
from bench.fuzz.models import is_expressible, small_models
from bench.fuzz.params import values_of
from bench.fuzz.scheduled import draw_scheduled
from engine.domain.errors import Deadlock, OutOfMemory, PlanError
from engine.domain.spec import RunSpec
from engine.domain.workload import SchedulerName
from engine.models.families.registry import FAMILIES
from engine.ops.torch_kernels import dispatch
from engine.strategies.registry import STRATEGIES, strategy
from tests.support.small_cases import GPT2, spec_of, star

SEED, ROUNDS = 20, 4
"""Four cases of every strategy, which together have every small model of the catalogue several times."""


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("place", range(len(STRATEGIES)), ids=[chosen.name for chosen in STRATEGIES])
def test_random_runs_are_equal_to_transformers_or_refused_or_end_as_stated(place):
    ends = Counter()
    for index in itertools.count(place, len(STRATEGIES)):  # some methods refuse most of what is drawn
        found = check(draw_spec(SEED, index))
        assert found.end != "wrong", f"loom fuzz --seed {SEED} --case {index}: {found.sentence}"
        ends[found.end] += 1
        if ends.total() >= ROUNDS and ends["refused"] < ends.total():
            return


def test_a_case_depends_on_its_seed_and_number_alone():
    assert draw_spec(3, 40) == draw_spec(3, 40)
    assert draw_spec(3, 40) != draw_spec(3, 41) != draw_spec(4, 41)


def test_cases_have_every_strategy_and_family_and_go_to_the_bounds():
    rounds = 4 * len(small_models()) * len(STRATEGIES)
    specs = [draw_spec(1, index) for index in range(rounds)]
    assert {spec.strategy for spec in specs} == {chosen.name for chosen in STRATEGIES}
    assert {spec.model.family for spec in specs} >= {
        family.name for family in FAMILIES if any(m.family == family.name for m in small_models())
    }
    assert {len(spec.cluster.workers) for spec in specs} == set(range(1, MAX_DEVICES + 1))
    assert {spec.model.dtype for spec in specs} == {"float32", "bfloat16"}
    assert {spec.model.weight_bits for spec in specs} == {0, 8, 4}
    assert {spec.model.num_experts for spec in specs} >= {0, 2, 64}
    assert {spec.workload.assumed_tokens > 0 for spec in specs} == {True, False}
    assert {spec.params.get("kv_pressure", "oom") for spec in specs} == {"oom", "recompute", "offload_kv"}
    assert {spec.workload.pattern for spec in specs} == {"sporadic", "bursty", "poisson", "users"}
    assert {spec.cluster.switches == () for spec in specs} == {True, False}
    assert any(spec.model.num_heads % 2 and spec.model.num_heads > 1 for spec in specs)
    assert any(spec.model.group_size > 1 for spec in specs)
    assert {spec.model.tied_head for spec in specs} == {True, False}
    models = [spec.model.model_copy(update={"weight_bits": 0.0, "draft": None}) for spec in specs]
    assert all(is_expressible(model) or model in small_models() for model in models)


def test_values_of_a_parameter_are_within_its_bounds_and_reach_all_choices():
    cluster = star((1e9, 2e9))
    for chosen in STRATEGIES:
        for name, field in chosen.Params.model_fields.items():
            for value in values_of(field, cluster):
                if name != "ratio" or field.annotation is not str:
                    chosen.Params.parse({name: value}, name)
    fields = strategy("lime").Params.model_fields
    assert set(values_of(fields["kv_transfer"], cluster)) == {True, False}
    assert min(values_of(strategy("mcu").Params.model_fields["group_size"], cluster)) == 2


def test_an_operation_that_computes_wrong_numbers_is_found(monkeypatch):
    own = dispatch.run

    def off(op, model, weights, caches, inputs):
        found = own(op, model, weights, caches, inputs)
        return found * 1.001 if type(op).__name__ == "Block" else found

    monkeypatch.setattr(dispatch, "run", off)
    found = check(spec_of("gpipe", GPT2, star((1e9, 2e9))))
    assert found.end == "wrong"
    assert "the largest relative error is" in found.sentence


@pytest.mark.parametrize(
    ("error", "end", "sentence"),
    [
        (PlanError("gpipe: no device is left."), "refused", "gpipe: no device is left."),
        (PlanError("no\nsentence"), "wrong", "the refusal is not one sentence: 'no\\nsentence'"),
        (KeyError("layer"), "wrong", "KeyError: 'layer' (test_fuzz_cases.py, line "),
        (ValueError("two\nlines"), "wrong", "ValueError: two lines"),
    ],
)
def test_a_planner_that_raises_has_refused_or_is_wrong(monkeypatch, error, end, sentence):
    def prepare(spec):
        raise error

    monkeypatch.setattr(checks, "prepare", prepare)
    found = check(spec_of("gpipe", GPT2, star((1e9, 2e9))))
    assert (found.end, found.sentence[: len(sentence)]) == (end, sentence)


@pytest.mark.parametrize(
    ("error", "end"),
    [
        (OutOfMemory("d0", 20_000_000, 10_000_000, "weights"), "out of memory"),
        (Deadlock("All wait."), "wrong"),
    ],
)
def test_a_run_that_ends_otherwise_says_how(monkeypatch, error, end):
    def outputs(prepared):
        raise error

    monkeypatch.setattr(checks, "outputs_of", outputs)
    found = check(spec_of("gpipe", GPT2, star((1e9, 2e9))))
    assert found.end == end
    assert str(error) in found.sentence


def test_a_drawn_run_is_a_document_that_gives_it_back():
    for index in range(len(STRATEGIES)):
        spec = draw_spec(2, index)
        assert RunSpec.model_validate_json(spec.model_dump_json()) == spec


def test_cases_are_counted_by_their_strategy():
    campaign = Campaign(1, 4, 8, ("single", "lime"))
    ended = [Ended(4, "equal", ""), Ended(5, "wrong", "x"), Ended(6, "equal", ""), Ended(7, "refused", "")]
    assert count(campaign, ended) == {
        "single": Counter(equal=2),
        "lime": Counter(wrong=1, refused=1),
    }


@pytest.mark.parametrize("place", range(len(STRATEGIES)), ids=[chosen.name for chosen in STRATEGIES])
def test_runs_whose_requests_meet_while_devices_fail_are_equal_to_transformers_too(place):
    for index in (place, place + len(STRATEGIES)):
        found = check(draw_scheduled(SEED, index))
        assert found.end != "wrong", f"loom fuzz --schedulers --seed {SEED} --case {index}: {found.sentence}"


def test_drawn_runs_have_every_scheduler_arrivals_failures_and_changes_of_rates():
    drawn = [draw_scheduled(SEED, index) for index in range(4 * len(STRATEGIES))]
    apart = [draw_scheduled(SEED, index, (strategy("disaggregated"),)) for index in range(20)]
    of_all = set(get_args(SchedulerName)) - {"own"}  # no method of EdgeLoom has one of its own
    assert {spec.workload.scheduler for spec in (*drawn, *apart)} == of_all
    assert {spec.workload.pattern for spec in drawn} == {"poisson", "users", "trace", "serve"}
    kinds = {change.kind for spec in drawn for change in spec.scenario.changes}
    assert kinds == {"drop_device", "freeze_device", "join_device", "set_rate", "slow_device"}
    assert draw_scheduled(SEED, 7) == drawn[7]
