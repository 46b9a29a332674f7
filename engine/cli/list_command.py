"""`loom list`: list what there is, from strategies to metrics, as a table or JSON."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from typing import Any

from engine.cli.command import Environment
from engine.cli.tables import console_for, table
from engine.domain.units import human
from engine.experiments.design.shipped_files import load, shipped_names
from engine.models.catalogue import rows as catalogue_rows
from engine.models.families.family import keys_read, restrictions
from engine.models.families.registry import FAMILIES
from engine.plugins.installed import Unusable
from engine.reports.metrics import METRICS
from engine.reports.metrics import UNUSABLE as METRICS_LEFT_OUT
from engine.strategies.registry import STRATEGIES, origin_of
from engine.strategies.registry import UNUSABLE as METHODS_LEFT_OUT

Row = dict[str, Any]
Rows = Callable[[Environment], list[Row]]
Columns = dict[str, Callable[[Row], str]]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", choices=tuple(LISTS))
    parser.add_argument("--json", action="store_true", help="as a JSON list")


def run(args: argparse.Namespace) -> int:
    rows, columns = LISTS[args.what]
    found = rows(args.environment)
    if args.json:
        sys.stdout.write(json.dumps(found, indent=2) + "\n")
        return 0
    shown = table(*columns, texts=PROSE)
    for row in found:
        shown.add_row(*(render(row) for render in columns.values()))
    console_for(sys.stdout).print(shown)
    for one in _left_out(args.what, args.environment):
        sys.stderr.write(f"Left out: {one.reason}\n")
    return 0


def _left_out(what: str, environment: Environment) -> tuple[Unusable, ...]:
    """What packages bring of this, and cannot be used."""
    if what == "strategies":
        return METHODS_LEFT_OUT
    if what == "metrics":
        return METRICS_LEFT_OUT
    return environment.left_out() if what in ("clusters", "devices", "models") else ()


def cluster_rows(environment: Environment) -> list[Row]:
    rows = []
    for name in environment.cluster_names():
        cluster = environment.load_cluster(name)
        rows.append(
            {
                "name": name,
                "title": cluster.title,
                "description": cluster.description,
                "num_devices": len(cluster.devices),
                "num_links": len(cluster.links),
                "source": cluster.source,
            }
        )
    return rows


def experiment_rows(environment: Environment) -> list[Row]:
    rows = []
    for name in shipped_names():
        experiment = load(name)
        rows.append(
            {
                "name": name,
                "title": experiment.title,
                "description": experiment.description,
                "paper": experiment.paper,
                "num_candidates": experiment.num_candidates,
                "worlds": list(experiment.worlds),
                "factors": [factor.name for factor in experiment.factors],
            }
        )
    return rows


def device_rows(environment: Environment) -> list[Row]:
    return [device.model_dump(mode="json") for device in environment.presets()]


def metric_rows(environment: Environment) -> list[Row]:
    return [metric.model_dump(mode="json") for metric in METRICS]


def model_rows(environment: Environment) -> list[Row]:
    return [row.model_dump(mode="json") for row in catalogue_rows()]


def family_rows(environment: Environment) -> list[Row]:
    return [
        {
            "name": row.name,
            "architecture": row.architecture,
            "keys": list(keys_read(row)),
            "restrictions": list(restrictions(row)),
        }
        for row in FAMILIES
    ]


def strategy_rows(environment: Environment) -> list[Row]:
    return [
        {
            "name": strategy.name,
            "title": strategy.title,
            "paper": strategy.paper,
            "summary": strategy.summary,
            "from": str(origin_of(strategy.name) or ""),
            "lossless": strategy.lossless,
            "params": strategy.Params.model_json_schema().get("properties", {}),
        }
        for strategy in STRATEGIES
    ]


def showcase_rows(environment: Environment) -> list[Row]:
    return [
        {
            "name": each.name,
            "title": each.title,
            "strategy": each.spec.strategy,
            "cluster": each.spec.cluster.name,
            "model": each.spec.model.name,
            "look_for": each.look_for,
            "others": [other.name for other in each.others],
        }
        for each in environment.showcases()
    ]


def _params(row: Row) -> str:
    return " ".join(f"{name}={schema.get('default', '…')}" for name, schema in row["params"].items())


PROSE = (
    "keys of config.json that are read",
    "and those with fewer values than in the library",
    "source",
    "what",
    "what to look for",
    "beside it",
    "parameters of the strategy",
)

LISTS: dict[str, tuple[Rows, Columns]] = {
    "clusters": (
        cluster_rows,
        {
            "name": lambda row: row["name"],
            "devices": lambda row: str(row["num_devices"]),
            "links": lambda row: str(row["num_links"]),
            "source": lambda row: row["source"],
            "what": lambda row: row["title"],
        },
    ),
    "devices": (
        device_rows,
        {
            "name": lambda row: row["name"],
            "compute": lambda row: human(row["flop_per_s"], "FLOP/s"),
            "memory": lambda row: human(row["memory_bytes"], "B"),
            "bandwidth": lambda row: human(row["memory_byte_per_s"], "B/s"),
            "price": lambda row: f"{row['price_usd']:,g} $" if row.get("price_usd") is not None else "",
            "rates are from": lambda row: row["basis"] or "",
            "what": lambda row: row["title"],
        },
    ),
    "experiments": (
        experiment_rows,
        {
            "name": lambda row: row["name"],
            "points": lambda row: str(row["num_candidates"]),
            "factors": lambda row: ", ".join(row["factors"]),
            "what": lambda row: row["title"],
        },
    ),
    "families": (
        family_rows,
        {
            "name": lambda row: row["name"],
            "keys of config.json that are read": lambda row: " ".join(row["keys"]),
            "and those with fewer values than in the library": lambda row: "; ".join(row["restrictions"]),
        },
    ),
    "metrics": (
        metric_rows,
        {
            "name": lambda row: row["name"],
            "of a": lambda row: row["of"],
            "unit": lambda row: row["unit"],
            "better": lambda row: row["better"] or "",
            "what": lambda row: row["title"] + (f": {row['about']}" if row["about"] else ""),
        },
    ),
    "models": (
        model_rows,
        {
            "name": lambda row: row["name"],
            "parameters": lambda row: human(row["num_parameters"], ""),
            "weights": lambda row: human(row["weight_bytes"], "B"),
            "trained": lambda row: "yes" if row["trained"] else "",
            "what": lambda row: row["title"],
        },
    ),
    "showcases": (
        showcase_rows,
        {
            "name": lambda row: row["name"],
            "cluster": lambda row: row["cluster"],
            "model": lambda row: row["model"],
            "beside it": lambda row: " ".join(row["others"]),
            "what to look for": lambda row: row["look_for"],
        },
    ),
    "strategies": (
        strategy_rows,
        {
            "name": lambda row: row["name"],
            "what": lambda row: row["title"] + (f" (from {row['from']})" if row["from"] else ""),
            "parameters of the strategy": _params,
        },
    ),
}
