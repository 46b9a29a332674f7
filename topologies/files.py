"""Cluster files: TOML, JSON or YAML ⇄ `ClusterSpec` and how it is drawn.

A file has the fields of `ClusterSpec`, with the tables `device`, `switch` and `link`, the same in every
format (`topologies.formats`; TOML writes them `[[device]]`). A device may name a `preset`: it takes all of
the preset's fields, and those that it states itself override them.
A device with `copies = 3` stands for three: chip-1, chip-2 and chip-3 for one called chip; a link that ends
at `chip-*` stands for one link of each. The keys of a drawing (`topologies.drawn`) may be in it: whatever has
`enabled = false` takes no part in runs, in the browser and on the command line.
"""

from __future__ import annotations

import stat
from functools import cache, partial
from pathlib import Path
from typing import Any

from engine.domain.cluster import ClusterSpec
from engine.domain.errors import SpecError, reworded
from engine.domain.toml_text import as_in_file
from engine.plugins.installed import Installed, Kind
from engine.plugins.packs import of_packs
from topologies.drawn import TABLE as GROUP_TABLE
from topologies.drawn import Drawn, parse_strictly, with_drawing, without_drawing
from topologies.foreign import containerlab, kind_of, netlab
from topologies.foreign import parse as parse_foreign
from topologies.foreign.build import Defaults, drawing_of
from topologies.foreign.others import READ, known_as
from topologies.formats import Format, format_of, read_text, write_text
from topologies.layout import MAX_DRAWN, CanvasLayout, enabled
from topologies.parts import DISKS, LINKS
from topologies.presets import FILE as PRESET_FILE
from topologies.presets import FITTED, preset

FOLDER = Path(__file__).parent
NO_CLUSTERS = (PRESET_FILE, FITTED, LINKS, DISKS)
PAPERS = "papers"
TABLES = {"device": "devices", "switch": "switches", "link": "links"}
MAX_DEVICES = 1000
MAX_LINKS = 4000
MAX_CHARS = 1_000_000
"""What a file may describe, counted before copies are made, and its size."""
_BY_DOCUMENT = (
    (containerlab.is_containerlab, containerlab.graph_of),
    (netlab.is_netlab, netlab.graph_of),
)
"""Other programs' documents that are read, and by what."""
PLAIN = ("name", "title", "description", "source")


def names() -> tuple[str, ...]:
    """Names of the clusters in this folder, sorted, then of those of packs."""
    return (*_own_names(), *clusters_of_packs().rows)


def _own_names() -> tuple[str, ...]:
    return tuple(sorted(path.stem for path in FOLDER.glob("*.toml") if path not in NO_CLUSTERS))


@cache
def clusters_of_packs() -> Installed[Path]:
    """Their files by name. Each is read once, so that one that is wrong is left out."""
    return of_packs(Kind("cluster", "clusters"), _own_names(), _of_folder)


def _of_folder(folder: Path) -> dict[str, Path]:
    found = {path.stem: path for path in sorted((folder / "clusters").glob("*.toml"))}
    for path in found.values():
        try:
            read_drawing(path)
        except SpecError as error:
            raise SpecError(f"{path.parent}: {error}") from error
    return found


def paper_names() -> tuple[str, ...]:
    """Names of the published testbeds, such as `papers/lime-e1`, sorted. `names` does not have them."""
    return tuple(sorted(f"{PAPERS}/{path.stem}" for path in (FOLDER / PAPERS).glob("*.toml")))


def load(path_or_name: str | Path) -> ClusterSpec:
    """The cluster `path_or_name`: a ready one or one of a pack by name, a published testbed too, or any file
    by path, without what is switched off; raises `SpecError`.
    """
    return enabled(*load_drawing(path_or_name))


def load_drawing(path_or_name: str | Path) -> Drawn:
    """Load a cluster with its drawing and what is switched off."""
    if str(path_or_name) in (*_own_names(), *paper_names()):
        return read_drawing(FOLDER / f"{path_or_name}.toml")
    if str(path_or_name) in clusters_of_packs().rows:
        return read_drawing(clusters_of_packs().rows[str(path_or_name)])
    path = Path(path_or_name)
    if not path.exists():
        sentence = f"{path}: no such cluster: give a cluster file or one of {', '.join(names())}."
        raise SpecError(sentence, [("cluster", "unknown")])
    return read_drawing(path)


def read_drawing(path: Path) -> Drawn:
    """A cluster file or the drawing of another program, told apart by the end of the name: any other end is
    that of a cluster file in TOML. Raises `SpecError`.
    """
    try:
        text = _text_of(path)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise SpecError(f"{path}: cannot read the cluster: {reason}.") from error
    kind = kind_of(path.name)
    if kind is not None:
        return parse_foreign(text, kind, path.name)
    return parse_drawing(text, path.name, format_of(path.name) or "toml")


def _text_of(path: Path) -> str:
    if not stat.S_ISREG(path.stat().st_mode):  # a device may never end, a pipe may never begin
        raise SpecError(f"{path}: cannot read the cluster: it is not a regular file.")
    limit_bytes = 4 * MAX_CHARS  # of which UTF-8 needs at most four for a character
    with path.open("rb") as file:
        data = file.read(limit_bytes + 1)
    text = "" if len(data) > limit_bytes else data.decode("utf-8")
    if (not text and data) or len(text) > MAX_CHARS:
        raise SpecError(f"{path}: has more than {MAX_CHARS:,} characters, the limit of a cluster file.")
    return text


def write_drawing(drawn: Drawn, path: Path) -> None:
    """Write a cluster file in the format that the end of its name says. Raises `SpecError`."""
    form = format_of(path.name)
    if form is None:
        raise SpecError(f"{path}: expected a name that ends with .toml, .json, .yaml or .yml.")
    try:
        path.write_text(dump_drawing(drawn, form), encoding="utf-8")
    except OSError as error:
        raise SpecError(f"{path}: cannot write the cluster: {error.strerror}.") from error


def parse_toml(text: str, where: str) -> ClusterSpec:
    """The cluster of the `text` of a cluster file, without what is switched off. Raises `SpecError`, as
    `parse_drawing`.
    """
    return enabled(*parse_drawing(text, where))


def _document(text: str, form: Format, where: str) -> dict[str, Any]:
    """The keys of a cluster file. Raises `SpecError`, which names the format of another program."""
    try:
        data = read_text(text, form, where)
    except SpecError as error:
        said = known_as(text)
        if not said and form == "toml" and "." in where and format_of(where) is None:
            said = f"{str(error).removeprefix(f'{where}: ').removesuffix('.')}; expected {READ}"
        if said:
            raise SpecError(f"{where}: {said}.", error.fields) from error
        raise
    own = data.keys() & {"device", "source"} or netlab.is_netlab(data)
    if not own and (said := known_as(text, data)):
        raise SpecError(f"{where}: {said}.", [(form, "is of another program")])
    return data


def parse_drawing(text: str, where: str, form: Format = "toml", defaults: Defaults | None = None) -> Drawn:
    """Parse a cluster file. `where` names it in errors (`SpecError`): `lab-3.toml, device[1].name: …`."""
    data = _document(text, form, where)
    for is_of, graph_of in _BY_DOCUMENT:
        if is_of(data):
            return drawing_of(graph_of(data, where), where, defaults or Defaults())
    data = _checked_tables(data, form, where)
    plain = {key: data[key] for key in PLAIN if key in data}
    given = data.get("device", [])
    numbers = [_number(row, f"{where}, device[{i}]") for i, row in enumerate(given)]
    copies = {str(row.get("name")): n for row, n in zip(given, numbers, strict=True) if "copies" in row}
    _at_most(sum(numbers), MAX_DEVICES, "devices", where)
    _at_most(sum(numbers) + len(data.get("switch", [])), MAX_DRAWN, "devices and switches", where)
    _at_most(sum(_copies_of(row, copies) for row in data.get("link", [])), MAX_LINKS, "links", where)
    devices = [
        (i, device)
        for i, (row, number) in enumerate(zip(given, numbers, strict=True))
        for device in _copied(row, number)
    ]
    rows = {
        "device": [device for _, device in devices],
        "switch": data.get("switch", []),
        "link": [link for row in data.get("link", []) for link in _links(row, copies)],
    }
    rows, layout = without_drawing(rows, data.get("group", []), where)
    lists: dict[str, Any] = {TABLES[table]: rows[table] for table in ("switch", "link") if table in data}
    lists["devices"] = [
        _with_preset(row, f"{where}, device[{i}]")
        for (i, _), row in zip(devices, rows["device"], strict=True)
    ]
    try:
        cluster = parse_strictly(ClusterSpec, {**plain, **lists}, where)
    except SpecError as error:
        raise reworded(error, partial(as_in_file, TABLES)) from error
    return Drawn(cluster, layout)


def dump_toml(cluster: ClusterSpec) -> str:
    """Text that `parse_toml` reads back as an equal cluster. Fields with their default value are left out."""
    return dump_drawing(Drawn(cluster, CanvasLayout()))


def dump_drawing(drawn: Drawn, form: Format = "toml") -> str:
    """Text that `parse_drawing` reads back as an equal drawing."""
    data = drawn.spec.model_dump(mode="json", exclude_defaults=True, exclude_none=True)
    plain = {key: data[key] for key in PLAIN if key in data}
    tables = {table: data[field] for table, field in TABLES.items() if field in data}
    return write_text({**plain, **with_drawing(tables, drawn.layout)}, form)


def _checked_tables(data: dict[str, Any], form: Format, where: str) -> dict[str, Any]:
    """`data`, if it has the keys of a cluster file. Raises `SpecError` for any other."""
    spelled = {table: f"[[{table}]]" if form == "toml" else table for table in (*TABLES, GROUP_TABLE)}
    for key in data:
        if key not in (*spelled, *PLAIN):
            expected = ", ".join([*PLAIN, *spelled.values()])
            raise SpecError(f"{where}, {key[:40]}: unknown key: expected {expected}.", [(key, "unknown key")])
    for table, spelling in spelled.items():
        if table in data and not _is_table_list(data[table]):
            expected = f"{spelling} tables" if form == "toml" else "a list of tables"
            raise SpecError(f"{where}, {table}: expected {expected}.", [(table, "expected tables")])
    return data


def _is_table_list(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(row, dict) for row in value)


def _number(row: dict[str, Any], where: str) -> int:
    """How many devices a row stands for. Raises `SpecError` unless it is a number of at least one."""
    number = row.get("copies", 1)
    if not isinstance(number, int) or isinstance(number, bool) or number < 1:
        sentence = f"{where}.copies: expected a whole number of at least 1, got {number!r:.40}."
        raise SpecError(sentence, [("device.copies", "expected at least 1")])
    return number


def _at_most(number: int, limit: int, what: str, where: str) -> None:
    if number > limit:
        sentence = f"{where}: describes {number:,} {what}, and the limit is {limit:,}."
        raise SpecError(sentence, [(what, f"at most {limit:,}")])


def _copied(row: dict[str, Any], number: int) -> list[dict[str, Any]]:
    """The devices that a row stands for."""
    if "copies" not in row:
        return [row]
    if "at" in row:
        sentence = f"the device {row.get('name', '')} has both copies and at: one place holds one device."
        raise SpecError(sentence, [("device.at", "not with copies")])
    own = {key: value for key, value in row.items() if key != "copies"}
    return [own | {"name": f"{row.get('name', '')}-{index + 1}"} for index in range(number)]


def _links(row: dict[str, Any], copies: dict[str, int]) -> list[dict[str, Any]]:
    """The links that a row stands for: one of every copy of a device that one end names as `name-*`."""
    end = _copied_end(row, copies)
    if end is None:
        return [row]
    name = str(row[end]).removesuffix("-*")
    return [row | {end: f"{name}-{index + 1}"} for index in range(copies[name])]


def _copies_of(row: dict[str, Any], copies: dict[str, int]) -> int:
    """How many links a row stands for."""
    end = _copied_end(row, copies)
    return 1 if end is None else copies[str(row[end]).removesuffix("-*")]


def _copied_end(row: dict[str, Any], copies: dict[str, int]) -> str | None:
    """The end of a link that names all copies of a device."""
    for end in ("a", "b"):
        name = str(row.get(end, ""))
        if name.endswith("-*") and name.removesuffix("-*") in copies:
            return end
    return None


def _with_preset(row: dict[str, Any], where: str) -> dict[str, Any]:
    if "preset" not in row:
        return row
    own = {key: value for key, value in row.items() if key != "preset"}
    if "name" not in own:
        raise SpecError(f"{where}.name: missing: a device has its own name.", [("device.name", "missing")])
    try:
        base = preset(str(row["preset"]))
    except SpecError as error:
        raise SpecError(f"{where}.preset: {error}", fields=error.fields) from error
    return {**base.model_dump(exclude={"name"}), **own}
