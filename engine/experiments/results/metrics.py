"""The numbers of a result: the figures of run, devices and links, and those of the method's own report."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from engine.domain.errors import SpecError
from engine.domain.report import RunReport
from engine.reports.metric import Metric, Subject
from engine.reports.metrics import metrics_of_a, values_of

MAX_OF_METHOD = 256
MAX_ITEMS = 32
MAX_DEVICES = 64
MAX_LINKS = 64
"""The most numbers of a method's own report, items of one list in it, devices, and directions of links, that
a result keeps.
"""

OF_A_DEVICE = re.compile(r"([a-z0-9_]+)\[([a-z][a-z0-9_-]*?)\]")
OF_A_LINK = re.compile(r"([a-z0-9_]+)\[([a-z][a-z0-9_-]*)--([a-z][a-z0-9_-]*)\]")
OF_A_METHOD = re.compile(r"method(\.[A-Za-z0-9_-]+)+")
ENDS = (("_s", "s"), ("_bytes", "B"), ("_j", "J"), ("_frac", "fraction"))


def metric(name: str) -> Metric:
    """The metric of this name. Raises `SpecError`, which names the known ones."""
    if found := _known(name, "run") or _known(name, "token"):
        return found
    if (link := OF_A_LINK.fullmatch(name)) and (found := _known(link[1], "link")):
        return found.model_copy(update={"name": name, "title": f"{found.title} from {link[2]} to {link[3]}"})
    if (device := OF_A_DEVICE.fullmatch(name)) and (found := _known(device[1], "device")):
        return found.model_copy(update={"name": name, "title": f"{found.title} of {device[2]}"})
    if OF_A_METHOD.fullmatch(name):
        last = name.rpartition(".")[2]
        unit = next((unit for end, unit in ENDS if last.endswith(end)), "")
        title = name.removeprefix("method.").replace("_", " ")
        return Metric(name=name, title=title, unit=unit, compute=lambda numbers: numbers[name])
    known = (one.name for one in metrics_of_a("run"))
    of_devices = (f"{one.name}[DEVICE]" for one in metrics_of_a("device"))
    of_links = (f"{one.name}[FROM--TO]" for one in metrics_of_a("link"))
    raise SpecError(
        f"metric is {name}, which is unknown: there are {', '.join((*known, *of_devices, *of_links))} and "
        "method.PATH."
    )


def _known(name: str, subject: Subject) -> Metric | None:
    return next((one for one in metrics_of_a(subject) if one.name == name), None)


def metrics_of(report: RunReport) -> dict[str, float]:
    """All metrics that the report has, by name. Those that make no sense there are left out."""
    found = values_of(report, metrics_of_a("run"))
    for device in report.devices[:MAX_DEVICES]:
        found |= _qualified(values_of(device, metrics_of_a("device")), device.name)
    for link in [link for link in report.links if link.bytes][:MAX_LINKS]:
        ends = (link.a, link.b) if link.direction == "forward" else (link.b, link.a)
        found |= _qualified(values_of(link, metrics_of_a("link")), "--".join(ends))
    if report.method is not None:
        numbers = _numbers(report.method.model_dump(mode="json"), "method")
        found |= dict(pair for pair, _ in zip(numbers, range(MAX_OF_METHOD), strict=False))
    return found


def _qualified(values: dict[str, float], whose: str) -> dict[str, float]:
    return {f"{name}[{whose}]": value for name, value in values.items()}


def _numbers(value: Any, path: str) -> Iterator[tuple[str, float]]:
    """Every number below `value` with its path, level by level; of a list the first ones."""
    level = [(path, value)]
    while level:
        below: list[tuple[str, Any]] = []
        for place, item in level:
            if isinstance(item, bool | int | float):
                yield place, float(item)
            elif isinstance(item, dict):
                below += [(f"{place}.{key}", inner) for key, inner in item.items()]
            elif isinstance(item, list):
                below += [(f"{place}.{index}", inner) for index, inner in enumerate(item[:MAX_ITEMS])]
        level = below
