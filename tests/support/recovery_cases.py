"""A small cluster whose runs are disturbed, and what a trace says about the tokens that came out."""

from engine.domain.cluster import ClusterSpec
from engine.domain.scenario import Scenario
from engine.domain.spec import RunSpec
from engine.domain.trace import Mark
from engine.domain.workload import Workload
from engine.models import catalogue
from engine.runs.predict import prepare, simulate
from engine.strategies.registry import by_rule
from engine.strategies.registry import strategy as strategy_named

DEVICE = {"memory_bytes": 4e8, "memory_byte_per_s": 5e8, "flop_per_s": 2e9}
CLUSTER = ClusterSpec(
    name="four",
    source="a",
    devices=[{"name": name, **DEVICE} for name in "abcd"],
    switches=[{"name": "s1"}],
    links=[{"a": name, "b": "s1", "bit_per_s": 2e7, "delay_s": 0.001} for name in "abcd"],
)
NEW_TOKENS = 6


def spec_of(strategy, changes=(), **more):
    model, weights = catalogue.resolve("tiny-llama", None)
    drafting = {"draft_layers": 1} if strategy_named(strategy).drafts else {}
    return RunSpec(
        cluster=CLUSTER,
        model=model,
        weights=weights,
        strategy=strategy,
        params=by_rule(strategy) | drafting,
        workload=more.pop("workload", Workload(prompt_tokens=12, new_tokens=NEW_TOKENS)),
        scenario=Scenario(changes=changes),
        **more,
    )


def marks(trace, name):
    return [item for item in trace if isinstance(item, Mark) and item.name == name]


def emitted(trace):
    return sorted((mark.facts["request"], mark.facts["index"]) for mark in marks(trace, "token_emitted"))


def halfway_s(strategy, **more):
    trace, outcome = simulate(prepare(spec_of(strategy, **more)))
    assert outcome.kind == "finished"
    times = [mark.time_s for mark in marks(trace, "token_emitted")]
    return times[len(times) // 2] + 1e-4
