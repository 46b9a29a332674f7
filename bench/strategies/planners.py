"""Searches random clusters for plans of the same method that beat its own, all of them predicted."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations
from random import Random
from typing import Any, NamedTuple

from bench.fuzz.clusters import draw_cluster
from bench.tables.rows import Table
from engine.advice.moves import moved, step_of
from engine.domain.by_hand import DeviceShare, PlanByHand, Unit
from engine.domain.cluster import ClusterSpec
from engine.domain.errors import EdgeLoomError
from engine.domain.model import ModelSpec
from engine.domain.spec import RunSpec
from engine.domain.workload import Workload
from engine.models import catalogue
from engine.runs.predict import predict
from engine.strategies.registry import strategy
from engine.strategies.shared.shares import largest_remainder

CLUSTERS, DRAWN, MOVES = 40, 40, 24
"""How many clusters are drawn, plans drawn on each, and plans tried beside the best of them, per method."""
BEATEN = 1.05
MODELS, LAYERS = ("gpt2", "tinyllama-42m", "bert-base", "tiny-llama"), 6
"""Models as wide as they are, but with few layers."""
ROOM_BYTES = 3e8
FASTER_LINKS = (1.0, 10.0, 100.0)
"""All links of a cluster are so much faster than drawn: else one device alone is best in most."""


class Method(NamedTuple):
    """A method with two planners: `plain` are the parameters of the paper's planner, `best` those of ours and
    of every plan by hand.
    """

    name: str
    plain: Mapping[str, Any]
    best: Mapping[str, Any]


METHODS: tuple[Method, ...] = (
    Method("gpipe", {"planner": "paper"}, {"planner": "best"}),
    Method("edgeshard", {"planner": "paper"}, {"planner": "best"}),
    Method("megatron", {"planner": "paper"}, {"planner": "best"}),
    Method("galaxy", {"planner": "paper"}, {"planner": "best"}),
    Method("voltage", {"planner": "paper"}, {"planner": "best"}),
    Method("lime", {"planner": "paper"}, {"planner": "best"}),
)


def measure_planners() -> Table:
    rows = tuple(
        row_of(method, [compared(method, draw_run(index)) for index in range(CLUSTERS)]) for method in METHODS
    )
    title = (
        f"{CLUSTERS} random clusters of two to six unlike devices, with one request or four. Rival: the "
        f"fastest, by prediction, of {DRAWN} plans of the same method drawn at random and {MOVES} that move "
        "a share of the best one. Times as long as the rival; below 1 no plan drawn is as fast."
    )
    columns = (
        "method",
        "clusters",
        "planner=paper: median",
        "worst",
        "planner=best: median",
        "worst",
        "beaten by over 5 %",
    )
    return Table(title, columns, rows)


class Compared(NamedTuple):
    """Predicted seconds by both planners; None without a plan."""

    paper_s: float | None
    best_s: float | None
    rival_s: float | None


def row_of(method: Method, found: Sequence[Compared]) -> tuple[str, ...]:
    sys.stderr.write(f"  {method.name}\n")
    able = [one for one in found if one.best_s is not None and one.rival_s is not None]
    paper = sorted(one.paper_s / one.rival_s for one in able if one.paper_s is not None and one.rival_s)
    best = sorted(one.best_s / one.rival_s for one in able if one.best_s is not None and one.rival_s)
    beaten = sum(ratio > BEATEN for ratio in best)
    missed = sum(one.best_s is None and one.rival_s is not None for one in found)
    return (
        method.name,
        f"{len(able)}" + (f", {missed} more without a plan of ours" if missed else ""),
        f"{paper[len(paper) // 2]:.2f}",
        f"{paper[-1]:.1f}",
        f"{best[len(best) // 2]:.2f}",
        f"{best[-1]:.2f}",
        f"{beaten} of {len(best)}",
    )


def draw_run(index: int) -> RunSpec:
    random = Random(f"planners/{index}")
    model = catalogue.resolve(random.choice(MODELS), "random")[0]
    model = model.model_copy(update={"num_layers": min(model.num_layers, LAYERS)})
    cluster = draw_cluster(random, model)
    while len(cluster.workers) < 2:
        cluster = draw_cluster(random, model)
    workload = Workload(
        prompt_tokens=random.choice((8, 32, 100)),
        new_tokens=random.choice((1, 4, 8)) if model.causal else 0,
        requests=random.choice((1, 1, 4)),
        pattern="bursty",
    )
    cluster = _plain(cluster, model, random.choice(FASTER_LINKS))
    return RunSpec(cluster=cluster, model=model, workload=workload, strategy="single")


def _plain(cluster: ClusterSpec, model: ModelSpec, faster: float) -> ClusterSpec:
    """The cluster without memories on chip; the source has room for both ends of the model besides its
    memory.
    """
    devices = [
        device.model_copy(
            update={"on_chip_weight_bytes": None}
            | ({"memory_bytes": ROOM_BYTES + device.memory_bytes} if device.name == cluster.source else {})
        )
        for device in cluster.devices
    ]
    links = [link.model_copy(update={"bit_per_s": link.bit_per_s * faster}) for link in cluster.links]
    return cluster.model_copy(update={"devices": tuple(devices), "links": tuple(links)})


def compared(method: Method, run: RunSpec) -> Compared:
    own = run.model_copy(update={"strategy": method.name})
    paper_s, best_s = (seconds(own, params) for params in (method.plain, method.best))
    return Compared(paper_s, best_s, rival_s(own, method.best, Random(f"{method.name}/{run.cluster}")))


def seconds(run: RunSpec, params: Mapping[str, Any]) -> float | None:
    try:
        report = predict(run.model_copy(update={"params": dict(params)}))
    except EdgeLoomError:
        return None
    return report.latency_s if report.outcome.kind == "finished" else None


def rival_s(run: RunSpec, params: Mapping[str, Any], random: Random) -> float | None:
    """The least time of all plans drawn; None if none fits."""
    chosen, known = strategy(run.strategy), dict[PlanByHand, float]()

    def tried(plan: PlanByHand) -> None:
        if plan not in known:
            found = seconds(run, {**params, "plan": plan.model_dump(exclude_defaults=True)})
            if found is not None:
                known[plan] = found

    for plan in drawn_plans(random, run):
        tried(plan)
    steps = chosen.hand_steps(run.model, chosen.Params.parse(dict(params), "parameters"))
    step = step_of(run.model, chosen.Params.units, dict(steps))
    names = [run.cluster.devices[rank].name for rank in run.cluster.workers]
    for _ in range(MOVES):
        if not known:
            break
        best = min(known, key=lambda plan: known[plan])
        giver, taker = random.choice([*permutations(names, 2)])
        other = moved(best, step, giver, taker, run.cluster.source)
        if other is not None:
            tried(other)
    return min(known.values(), default=None)


def drawn_plans(random: Random, run: RunSpec) -> Iterator[PlanByHand]:
    """Each device alone, all of them by speed and evenly, then any group with any shares in any order."""
    names = [run.cluster.devices[rank].name for rank in run.cluster.workers]
    speeds = {device.name: device.flop_per_s for device in run.cluster.devices}
    for name in names:
        yield plan_with(run, [name], [1.0], random)
    for power in (0.0, 1.0):
        yield plan_with(run, names, [speeds[name] ** power for name in names], random)
    for _ in range(DRAWN - len(names) - 2):
        group = random.sample(names, random.randint(1, len(names)))
        power, spread = random.choice((0.0, 0.5, 1.0)), random.choice((1.0, 1.5, 4.0))
        yield plan_with(
            run, group, [speeds[name] ** power * spread ** random.random() for name in group], random
        )


def plan_with(run: RunSpec, names: Sequence[str], weights: Sequence[float], random: Random) -> PlanByHand:
    """The model divided among `names` by `weights`; the source comes first where layers are divided."""
    chosen, model = strategy(run.strategy), run.model
    steps = chosen.hand_steps(model, chosen.Params())
    pairs = sorted(zip(names, weights, strict=True), key=lambda pair: pair[0] != run.cluster.source)
    names, weights = [name for name, _ in pairs], [weight for _, weight in pairs]
    wholes: dict[Unit, int] = {
        "layers": model.num_layers,
        "heads": model.num_heads,
        "columns": model.intermediate_size,
    }
    amounts: dict[str, list[float]] = {}
    for unit, whole in wholes.items():
        if unit in chosen.Params.units:
            step = steps.get(unit, 1)
            amounts[unit] = [step * count for count in largest_remainder(whole // step, weights)]
    if "rows" in chosen.Params.units:
        amounts["rows"] = [weight / sum(weights) for weight in weights]
    shares = [
        DeviceShare.model_validate({"device": name} | {unit: of[number] for unit, of in amounts.items()})
        for number, name in enumerate(names)
    ]
    decodes = "decoder" in chosen.Params.settings and run.workload.new_tokens
    some = tuple(share for share in shares if any(share.amount(unit) for unit in chosen.Params.units))
    return PlanByHand(devices=some, decoder=random.choice(some).device if decodes else None)
