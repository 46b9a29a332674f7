"""The judge plays a few layers and tokens, and says how long the whole run takes in the simulated world."""

import pytest

from bench.strategies.plans import METHODS, draw
from engine.domain.errors import EdgeLoomError
from engine.domain.spec import RunSpec
from engine.planning.judge import PLAYED_TOKENS, Judge
from engine.runs.predict import predict, prepare
from engine.strategies.registry import strategy
from engine.strategies.voltage.best import MEASURED_LAYERS
from tests.support.small_cases import GPT2, LLAMA, star

CLOSE = 0.025
"""The second token stands for all further ones, and may take a little longer than those."""
CASES = 4
ALIKE = {
    "megatron": (1, CLOSE),
    "deepspeed": (1, CLOSE),
    "galaxy": (1, CLOSE),
    "voltage": (MEASURED_LAYERS, 0.06),
}
"""Methods whose plans are the same in every layer, how many layers they measure, and how close that comes:
Voltage's devices wait for each other but once in a layer.
"""


def judged(spec: RunSpec, **options: int) -> float:
    """Seconds of the run's own plan, by the judge."""
    method, work = strategy(spec.strategy), spec.workload
    plan = prepare(spec).plan
    sizes = work.prompt_tokens, work.new_tokens, work.requests
    judge = Judge(method, spec.cluster, spec.model, *sizes, **options)
    hand = method.by_hand(spec.cluster, spec.model, plan)
    params = method.Params.parse(spec.params, "params").model_copy(update={"plan": hand})
    return judge.seconds(lambda model: method.plan(spec.cluster, model, work, params))


@pytest.mark.parametrize("name", ALIKE)
def test_the_judge_s_time_is_that_of_the_whole_simulation(name):
    (measured, close), compared, index = ALIKE[name], 0, METHODS.index(name) + len(METHODS)
    while compared < CASES:
        spec, index = draw(index)[0].model_copy(update={"params": {"planner": "paper"}}), index + len(METHODS)
        spec = spec.model_copy(update={"model": spec.model.model_copy(update={"num_layers": 12})})
        try:
            report = predict(spec)
        except EdgeLoomError:
            continue
        assert judged(spec, measured=measured) == pytest.approx(report.latency_s, rel=close), spec.name
        compared += 1


@pytest.mark.parametrize("index", [313, 907])
def test_a_late_start_or_an_end_that_nothing_follows_is_not_taken_for_a_layer(index):
    """In run 907 a device makes up for a late start in the second layer; in run 313 the last layer is another
    5 % longer, as no other waits for its rows.
    """
    spec = draw(index)[0].model_copy(update={"params": {"planner": "paper"}})
    spec = spec.model_copy(update={"model": spec.model.model_copy(update={"num_layers": 12})})
    assert judged(spec) == pytest.approx(predict(spec).latency_s, rel=1e-3)


@pytest.mark.parametrize("tokens", [1, 2, 40])
def test_an_answer_of_any_length_is_judged_by_few_of_its_tokens(tokens):
    spec = RunSpec(
        cluster=star([1e9, 2e9]),
        model=LLAMA.model_copy(update={"num_layers": 6, "max_positions": 256}),
        strategy="megatron",
        params={"planner": "paper"},
        workload={"prompt_tokens": 9, "new_tokens": tokens},
    )
    assert judged(spec) == pytest.approx(predict(spec).latency_s, rel=CLOSE)


@pytest.mark.parametrize("gather", ["direct", "ring", "causal"])
def test_tokens_that_are_recomputed_take_longer_and_longer(gather):
    """The pass for the last token has 48 rows, that for the second 10."""
    spec = RunSpec(
        cluster=star([1e9, 2e9, 1e9]),
        model=GPT2.model_copy(update={"num_layers": 16}),
        strategy="voltage",
        params={"decode": "recompute", "causal_trim": gather == "causal", "gather": gather},
        workload={"prompt_tokens": 9, "new_tokens": 40},
    )
    assert judged(spec, measured=MEASURED_LAYERS, recomputes=True) == pytest.approx(
        predict(spec).latency_s, rel=CLOSE
    )


def test_uneven_plans_are_played_whole():
    """Of six layers one device has four: no two layers of that plan tell the time of the others."""
    spec = RunSpec(
        cluster=star([1e9, 4e9], memory_bytes=9e5),
        model=GPT2.model_copy(update={"num_layers": 6}),
        strategy="gpipe",
        params={"plan": {"devices": [{"device": "d0", "layers": 2}, {"device": "d1", "layers": 4}]}},
        workload={"prompt_tokens": 9, "new_tokens": 2},
    )
    assert judged(spec, alike=False) == pytest.approx(predict(spec).latency_s, rel=1e-9)


@pytest.mark.parametrize("tokens", [1, 7, 8, 9, 50])
@pytest.mark.parametrize(
    ("method", "schedule"), [("edgeshard", "no-bubbles"), ("edgeshard", "bubbles"), ("gpipe", "")]
)
def test_a_burst_in_a_pipeline_is_judged_by_the_tokens_at_its_beginning(method, schedule, tokens):
    """Of up to eight tokens all are played, if requests begin their next ones without waiting for all."""
    spec = RunSpec(
        cluster=star([1e9, 5e8, 2e9], op_overhead_s=2e-5),
        model=GPT2,
        strategy=method,
        params={
            "planner": "best",
            "plan": {"devices": [{"device": f"d{rank}", "layers": 1} for rank in range(3)]},
            **({"schedule": schedule} if schedule else {}),
        },
        workload={"prompt_tokens": 9, "new_tokens": tokens, "requests": 6, "pattern": "bursty"},
    )
    whole = tokens <= PLAYED_TOKENS and schedule == "no-bubbles"
    close = 1e-9 if whole else CLOSE
    assert judged(spec, alike=False) == pytest.approx(predict(spec).latency_s, rel=close)


def test_a_plan_that_is_refused_takes_for_ever():
    spec = RunSpec(cluster=star([1e9]), model=GPT2, strategy="single", params={})
    judge = Judge(strategy("single"), spec.cluster, GPT2, 9, 3)

    def refused(model):
        raise EdgeLoomError("no room")

    assert judge.seconds(refused) == float("inf")
