"""The order in which a cluster lists its devices and links decides nothing, and better hardware slows no run
down, except where a method plans by a rule that its report names.

All times are the simulated world's, over random clusters with slow and fast links.
"""

from random import Random

import pytest

from engine.domain.cluster import ClusterSpec
from engine.strategies.planner.choice import PlannedParams
from engine.strategies.registry import BUILT_IN, rule_of
from tests.support.random_clusters import drawn_run, seconds, with_strategy

SEED, CASES = "order", 200
FEW = (66, 173, 216)
"""Clusters of the cheap version: in one the order decided the plans of four searches, in the others a device
three times as fast hid the best plan of LIME, or of Voltage.
"""
SAME = 1 + 1e-9
SLOWER = 1.02
"""Planners minimise estimates of the time, which are this close to the simulation."""
BETTER = {
    "memory": (1.5, ("memory_bytes",)),
    "speed": (3.0, ("flop_per_s", "memory_byte_per_s", "disk_byte_per_s")),
    "link": (4.0, ("bit_per_s", "reverse_bit_per_s")),
}
VARIANTS = [
    pytest.param(chosen.name, params, id="-".join((chosen.name, *params.values())))
    for chosen in BUILT_IN
    for params in (
        [{"planner": "paper"}, {"planner": "best"}] if issubclass(chosen.Params, PlannedParams) else [{}]
    )
]
CLUSTERS = pytest.mark.parametrize(
    "cases", [FEW, pytest.param(range(CASES), marks=pytest.mark.long("engine"))], ids=["few", "many"]
)


def drawn(index):
    """A run on a cluster with two workers at least, its links 1, 10 or 100 times as fast as drawn; None for
    one device alone.
    """
    run = drawn_run(SEED, index)
    factor = Random(f"f/{index}").choice((1.0, 10.0, 100.0))
    links = [better(link, factor, ("bit_per_s", "reverse_bit_per_s")) for link in run.cluster.links]
    return with_parts(run, links=links) if len(run.cluster.workers) > 1 else None


def with_parts(run, **parts):
    """The run on the same cluster with other devices or links, and routes of its own."""
    fields = {name: getattr(run.cluster, name) for name in ClusterSpec.model_fields}
    return run.model_copy(update={"cluster": ClusterSpec(**fields | parts)})


def better(value, factor, names):
    known = {name: getattr(value, name) for name in names}
    return value.model_copy(update={name: old * factor for name, old in known.items() if old is not None})


def permuted(run, random):
    return with_parts(
        run,
        **{
            name: random.sample(getattr(run.cluster, name), len(getattr(run.cluster, name)))
            for name in ("devices", "switches", "links")
        },
    )


def with_one_better(run, what, random):
    """The run where one worker has more memory or is faster, or one link is."""
    factor, names = BETTER[what]
    if what == "link":
        links = list(run.cluster.links)
        at = random.randrange(len(links))
        links[at] = better(links[at], factor, names)
        return with_parts(run, links=links)
    devices = list(run.cluster.devices)
    at = random.choice(run.cluster.workers)
    devices[at] = better(devices[at], factor, names)
    return with_parts(run, devices=devices)


def searched(name, params, cases):
    """The runs of `cases` whose plan is none of a rule that the report names, with their seconds."""
    for index in cases:
        run = drawn(index)
        if run is not None and not rule_of(with_strategy(run, name, **params)):
            yield index, run, seconds(run, name, **params)


@CLUSTERS
@pytest.mark.parametrize(("name", "params"), VARIANTS)
def test_the_order_of_devices_and_links_decides_nothing_unless_the_report_names_the_rule(name, params, cases):
    for index, run, own_s in searched(name, params, cases):
        other_s = seconds(permuted(run, Random(f"perm/{index}/0")), name, **params)
        assert (own_s is None) == (other_s is None), f"case {index}: a plan in one order alone"
        if own_s is not None:
            assert 1 / SAME < other_s / own_s < SAME, f"case {index}: {other_s / own_s:.4f} times as long"


@CLUSTERS
@pytest.mark.parametrize("what", BETTER)
@pytest.mark.parametrize(("name", "params"), VARIANTS)
def test_better_hardware_slows_no_run_down_unless_the_report_names_the_rule(name, params, what, cases):
    for index, run, own_s in searched(name, params, cases):
        if own_s is None:
            continue
        grown_s = seconds(with_one_better(run, what, Random(f"grow/{index}/{what}")), name, **params)
        assert grown_s is not None, f"case {index}: no plan any more"
        assert grown_s <= SLOWER * own_s, f"case {index}: {grown_s / own_s:.3f} times as long"
