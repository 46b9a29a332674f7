"""What may be varied in a run: the factors that the form offers, with units and sensible ranges."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, get_args

import topologies
from engine.domain.cluster import ClusterSpec, ComputeModel
from engine.domain.errors import SpecError
from engine.domain.quantity import Coordinate
from engine.domain.scenario import Scenario
from engine.experiments.design.paths import unit_of
from engine.models import catalogue
from engine.reports.effects import in_words
from topologies.traces import CALM, traces
from webapp.base import budgets
from webapp.clusters.models import Cluster
from webapp.experiments.design.factor_option import Choice, FactorOption
from webapp.experiments.design.parameters import parameters
from webapp.experiments.design.sources import cluster as cluster_by_name

Field = tuple[str, str, str, tuple[float, float]]
"""Field, name of the factor, title, and the range in which values make sense."""

LINK_FIELDS: tuple[Field, ...] = (
    ("bit_per_s", "rate", "Rate of the links", (1e6, 10e9)),
    ("delay_s", "delay", "Delay of the links", (0.0, 0.2)),
    ("jitter_s", "jitter", "Jitter of the links", (0.0, 0.05)),
    ("loss_frac", "loss", "Loss on the links", (0.0, 0.05)),
)
DEVICE_FIELDS: tuple[Field, ...] = (
    ("flop_per_s", "speed", "Speed of the devices", (1e8, 1e14)),
    ("memory_bytes", "memory", "Memory of the devices", (1e6, 256e9)),
    ("memory_byte_per_s", "memory_rate", "Memory bandwidth of the devices", (1e8, 2e12)),
    ("disk_byte_per_s", "disk_rate", "Rate at which weights load", (1e7, 1e10)),
    ("op_overhead_s", "op_overhead", "Cost of an operation", (0.0, 1e-3)),
    ("message_overhead_s", "message_overhead", "Cost of a message", (0.0, 1e-2)),
)


def options(base: dict[str, Any]) -> list[FactorOption]:
    """What may be varied in this base. Raises `SpecError` if it has no cluster."""
    cluster = cluster_of(base)
    return [
        *_links(cluster),
        *_devices(cluster),
        *_model(base),
        *_workload(base),
        *_changes(base, cluster),
        *_run(base),
        *parameters(base),
    ]


def cluster_of(base: dict[str, Any]) -> ClusterSpec:
    """The cluster that the base of an experiment names or has. Raises `SpecError` if there is none."""
    given = base.get("cluster")
    if isinstance(given, str):
        return cluster_by_name(given)
    if isinstance(given, dict):
        cluster: ClusterSpec = ClusterSpec.parse(given, "base.cluster")
        budgets.check_cluster(cluster, "base.cluster")
        return cluster
    is_given = "missing" if given is None else f"of type {type(given).__name__}"
    expected = "the name of a cluster, such as lab-3, or a cluster as JSON"
    raise SpecError(
        f"base.cluster is {is_given}: give {expected}.", [("base.cluster", f"expected {expected}")]
    )


def _links(cluster: ClusterSpec) -> Iterable[FactorOption]:
    targets = [link.name for link in cluster.links]
    if targets:
        yield from _numbers("cluster.links[*]", "Links", LINK_FIELDS, targets, cluster.links)


def _devices(cluster: ClusterSpec) -> Iterable[FactorOption]:
    workers = [device for device in cluster.devices if device.role == "worker"]
    names = [device.name for device in cluster.devices]
    yield FactorOption(
        path="cluster.num_workers",
        name="devices",
        title="Number of devices that work",
        group="Devices",
        unit="",
        kind="whole",
        current=len(workers),
        low=1,
        high=len(cluster.devices),
    )
    yield FactorOption(
        path="cluster.devices[*].preset",
        name="preset",
        title="Kind of the devices",
        group="Devices",
        unit="",
        kind="choice",
        targets=names,
        choices=[Choice(value=row.name, label=row.title or row.name) for row in topologies.presets()],
        current=None,
    )
    yield from _numbers("cluster.devices[*]", "Devices", DEVICE_FIELDS, names, cluster.devices)


def _numbers(
    path: str, group: str, fields: Sequence[Field], targets: list[str], items: Sequence[object]
) -> Iterable[FactorOption]:
    """An option per field of the links or devices `items`, whose names are `targets`."""
    for field, name, title, (low, high) in fields:
        yield FactorOption(
            path=f"{path}.{field}",
            name=name,
            title=title,
            group=group,
            unit=unit_of(f"{path}.{field}") or "",
            kind="number",
            targets=targets,
            current=_same([getattr(item, field) for item in items]),
            low=low,
            high=high,
        )


def _model(base: dict[str, Any]) -> Iterable[FactorOption]:
    given = base.get("model")
    yield FactorOption(
        path="model",
        name="model",
        title="Model",
        group="Model",
        unit="",
        kind="choice",
        choices=[Choice(value=row.name, label=row.title) for row in catalogue.rows()],
        current=given if isinstance(given, str) else None,
    )


def _workload(base: dict[str, Any]) -> Iterable[FactorOption]:
    workload = _section(base, "workload")
    rows: tuple[tuple[str, str, str, float, float, Coordinate], ...] = (
        ("prompt_tokens", "prompt_tokens", "Tokens of the prompt", 1, 4096, 16),
        ("new_tokens", "new_tokens", "New tokens", 0, 2048, 16),
        ("requests", "requests", "Requests", 1, 64, 1),
    )
    for field, name, title, low, high, default in rows:
        yield FactorOption(
            path=f"workload.{field}",
            name=name,
            title=title,
            group="Workload",
            unit="",
            kind="whole",
            current=workload.get(field) or default,
            low=low,
            high=high,
        )
    yield FactorOption(
        path="workload.pattern",
        name="arrival",
        title="Arrival of the requests",
        group="Workload",
        unit="",
        kind="choice",
        choices=[
            Choice(value="sporadic", label="one after the other"),
            Choice(value="bursty", label="all at once"),
        ],
        current=workload.get("pattern", "sporadic"),
    )


FAILURES = (("drop_device", "crash"), ("freeze_device", "freeze"))
LATEST_S = 3600.0


def _changes(base: dict[str, Any], cluster: ClusterSpec) -> Iterable[FactorOption]:
    """A curve of a link's rate; when each change of the base's scenario comes, where, how much, and a
    failure's kind. Raises `SpecError` for a scenario that cannot be read.
    """
    yield FactorOption(
        path="scenario",
        name="rate_curve",
        title="Curve of a link's rate",
        group="Failures and changes",
        unit="",
        kind="choice",
        choices=[
            Choice(value=CALM, label="no curve"),
            *(
                Choice(value=f"{name}@{link.name}", label=f"{name} on {link.name}")
                for link in cluster.links
                for name in traces()
            ),
        ],
        current=CALM,
    )
    given = base.get("scenario")
    if not isinstance(given, dict):
        return
    scenario: Scenario = Scenario.parse(given, "base.scenario")
    asked = _section(base, "workload").get("new_tokens")
    tokens = asked if isinstance(asked, int) and asked else 16
    rates = {field: (title, low, high) for field, _, title, (low, high) in LINK_FIELDS}
    for index, change in enumerate(scenario.changes):
        path, number, what = f"scenario.changes[{index}]", index + 1, in_words(change)
        about: dict[str, Any] = {"group": "Failures and changes"}
        times: tuple[tuple[str, str, str, float, float], ...] = (
            ("at_s", "time", "Time of", 0.0, LATEST_S),
            ("at_frac", "part", "Percent of the run before", 0.1, 0.9),
            ("after_token", "token", "Tokens before", 1, max(2, tokens - 1)),
        )
        for field, name, title, low, high in times:
            yield FactorOption(
                path=f"{path}.{field}",
                name=f"change_{number}_{name}",
                title=f"{title}: {what}",
                unit=unit_of(f"{path}.{field}") or "",
                kind="whole" if field == "after_token" else "number",
                current=None if field == "at_s" and change.is_relative else getattr(change, field),
                low=low,
                high=high,
                **about,
            )
        fields = change.model_dump()
        places = {
            "device": [device.name for device in cluster.devices],
            "link": [link.name for link in cluster.links],
        }
        for place, names in places.items():
            if place in fields:
                yield FactorOption(
                    path=f"{path}.{place}",
                    name=f"change_{number}_{place}",
                    title=f"{place.capitalize()} of: {what}",
                    unit="",
                    kind="choice",
                    choices=[Choice(value=name, label=name) for name in names],
                    current=fields[place],
                    **about,
                )
        if change.kind in dict(FAILURES):
            yield FactorOption(
                path=f"{path}.kind",
                name=f"change_{number}_kind",
                title=f"Kind of: {what}",
                unit="",
                kind="choice",
                choices=[Choice(value=value, label=label) for value, label in FAILURES],
                current=change.kind,
                **about,
            )
        for field in rates.keys() & fields.keys():
            title, low, high = rates[field]
            yield FactorOption(
                path=f"{path}.{field}",
                name=f"change_{number}_{field}",
                title=f"{title} after: {what}",
                unit=unit_of(f"{path}.{field}") or "",
                kind="number",
                current=fields[field],
                low=low,
                high=high,
                **about,
            )


def _run(base: dict[str, Any]) -> Iterable[FactorOption]:
    yield FactorOption(
        path="cluster",
        name="cluster",
        title="Cluster",
        group="Run",
        unit="",
        kind="choice",
        choices=[Choice(value=name, label=title or name) for name, title in _clusters()],
        current=base["cluster"] if isinstance(base.get("cluster"), str) else None,
    )
    yield FactorOption(
        path="compute_model",
        name="compute_model",
        title="Model of the devices' speed",
        group="Run",
        unit="",
        kind="choice",
        choices=[Choice(value=name, label=name) for name in get_args(ComputeModel)],
        current=base.get("compute_model"),
    )
    yield FactorOption(
        path="silence_s",
        name="silence",
        title="Silence after which a device counts as failed",
        group="Run",
        unit="s",
        kind="number",
        current=base.get("silence_s", 2.0),
        low=0.1,
        high=60.0,
    )
    yield FactorOption(
        path="failover",
        name="failover",
        title="After a device has failed",
        group="Run",
        unit="",
        kind="choice",
        choices=[Choice(value="replan", label="plan again"), Choice(value="stop", label="stop")],
        current=base.get("failover", "replan"),
    )


def _clusters() -> list[tuple[str, str]]:
    drawn = list(Cluster.objects.order_by("name").values_list("name", "title"))
    known = {name for name, _ in drawn}
    return drawn + [(name, topologies.load(name).title) for name in topologies.names() if name not in known]


def _section(base: dict[str, Any], key: str) -> dict[str, Any]:
    """An object of the base; empty where there is none, or what the check of the experiment refuses."""
    given = base.get(key)
    return given if isinstance(given, dict) else {}


def _same(values: Sequence[float]) -> float | None:
    return values[0] if len(set(values)) == 1 else None
