"""Changes of a whole cluster as plain data: fewer devices or workers, copies of a device, another preset."""

from __future__ import annotations

from typing import Any

from engine.domain.errors import SpecError
from engine.experiments.design.paths import Step, names_of
from engine.experiments.design.sources import Sources

Document = dict[str, Any]
KEPT_OF_A_DEVICE = ("name", "title", "role")
"""What a device keeps when it becomes another preset."""

MAX_DEVICES = 1000


def edit_cluster(cluster: Document, steps: tuple[Step, ...], value: Any, sources: Sources) -> bool:
    """Apply a setting below `cluster` in place if it is one of these; returns whether it was.

    `steps` are those of its path after `cluster`. Raises `SpecError`.
    """
    match [(step.name, step.item) for step in steps]:
        case [("num_devices", "")]:
            keep_first_devices(cluster, whole(value, "cluster.num_devices"))
        case [("num_workers", "")]:
            keep_first_workers(cluster, whole(value, "cluster.num_workers"))
        case [("copies", ""), ("", name)]:
            copy_device(cluster, name, whole(value, f"cluster.copies[{name}]"))
        case [("devices", ""), ("", name), ("preset", "")]:
            use_preset(cluster, name, str(value), sources)
        case _:
            return False
    return True


def whole(value: Any, path: str) -> int:
    """`value` as a whole number of at least one. Raises `SpecError` for anything else."""
    is_whole = isinstance(value, int | float) and not isinstance(value, bool) and value == int(value)
    if not is_whole or not 1 <= value <= MAX_DEVICES:
        raise SpecError(f"{path}: expected a whole number from 1 to {MAX_DEVICES}, got {value!r}.")
    return int(value)


def keep_first_devices(cluster: Document, number: int) -> None:
    """Remove the devices after the first `number`, with the links that end at them."""
    devices = cluster["devices"]
    if number > len(devices):
        raise SpecError(
            f"cluster.num_devices: {cluster['name']} has {len(devices)} devices, so not {number}: "
            "use cluster.copies[NAME], or a larger cluster."
        )
    gone = {device["name"] for device in devices[number:]}
    if cluster["source"] in gone:
        raise SpecError(
            f"cluster.num_devices: the source {cluster['source']} is not among the first {number} devices of "
            f"{cluster['name']}: put it first."
        )
    cluster["devices"] = devices[:number]
    cluster["links"] = [link for link in cluster["links"] if not {link["a"], link["b"]} & gone]


def keep_first_workers(cluster: Document, number: int) -> None:
    """Make workers after the first `number` terminals: they forward, and compute nothing."""
    workers = [device for device in cluster["devices"] if device.get("role", "worker") == "worker"]
    if number > len(workers):
        raise SpecError(
            f"cluster.num_workers: {cluster['name']} has {len(workers)} workers, so not {number}: use "
            "cluster.copies[NAME], or a larger cluster."
        )
    for device in workers[number:]:
        device["role"] = "terminal"


def copy_device(cluster: Document, name: str, number: int) -> None:
    """`number` devices NAME-1 … in place of NAME; each has the links that NAME had."""
    index = _index(cluster, name, f"cluster.copies[{name}]")
    if len(cluster["devices"]) - 1 + number > MAX_DEVICES:
        raise SpecError(f"cluster.copies[{name}]: makes more than {MAX_DEVICES} devices.")
    row = cluster["devices"][index]
    names = [f"{name}-{copy + 1}" for copy in range(number)]
    cluster["devices"][index : index + 1] = [{**row, "name": own} for own in names]
    cluster["links"] = [
        {**link, end: own} if end else link
        for link in cluster["links"]
        for end in ["a" if link["a"] == name else "b" if link["b"] == name else ""]
        for own in (names if end else [""])
    ]
    if cluster["source"] == name:
        cluster["source"] = names[0]


def use_preset(cluster: Document, name: str, preset: str, sources: Sources) -> None:
    """Device `name`, or all with `*`, get the preset's fields."""
    fields = sources.preset(preset).model_dump(mode="json", exclude=set(KEPT_OF_A_DEVICE))
    devices = cluster["devices"]
    chosen = (
        range(len(devices)) if name == "*" else [_index(cluster, name, f"cluster.devices[{name}].preset")]
    )
    for index in chosen:
        own = {key: devices[index][key] for key in KEPT_OF_A_DEVICE if key in devices[index]}
        devices[index] = {**fields, **own}


def _index(cluster: Document, name: str, path: str) -> int:
    devices = cluster["devices"]
    for index, device in enumerate(devices):
        if name in names_of(device) or name == str(index):
            return index
    known = ", ".join(str(device["name"]) for device in devices)
    raise SpecError(f"{path}: cluster {cluster['name']} has no device {name}: it has {known}.")
