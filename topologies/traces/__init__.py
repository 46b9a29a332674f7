"""Example traces of a link's rate over time, as CSV files that `--scenario` takes, and how they were made.

They are made, not recorded: three ways in which the rate of a radio link varies, each from a formula and a
seed. Columns: at_s (virtual seconds), link, bit_per_s, and direction if not both.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from random import Random
from typing import NamedTuple

from engine.domain.errors import SpecError
from engine.domain.scenario import Scenario
from engine.plugins.installed import Installed, Kind, check_free
from engine.plugins.packs import of_packs
from engine.recorded.files import text_of
from engine.recorded.scenarios import names_links, parse_file

LINK = "office--hall"
BASE_BIT_PER_S = 60e6
DURATION_S = 60.0
STEP_S = 0.5
FOLDER = Path(__file__).resolve().parent


def walk(random: Random) -> Iterator[float]:
    """The rate while somebody carries a device around the access point: the rate follows the distance, with
    slow fading.
    """
    fading = 0.0
    for step in range(round(DURATION_S / STEP_S)):
        fading = 0.9 * fading + random.gauss(0.0, 0.08)
        distance = 0.55 + 0.4 * math.sin(2 * math.pi * step * STEP_S / 20.0)
        yield max(0.05, min(1.0, (1.0 - 0.7 * distance) * math.exp(fading)))


def neighbours(random: Random) -> Iterator[float]:
    """The rate while up to three neighbours come and go on the same channel, each taking an equal share."""
    active = [False, False, False]
    for _ in range(round(DURATION_S / STEP_S)):
        active = [random.random() < (0.88 if on else 0.08) for on in active]
        yield 1.0 / (1 + sum(active))


def tunnels(random: Random) -> Iterator[float]:
    """A vehicle: a good link that all but vanishes for some seconds, again and again."""
    left, inside = random.uniform(5.0, 9.0), False
    for _ in range(round(DURATION_S / STEP_S)):
        left -= STEP_S
        if left <= 0:
            inside = not inside
            left = random.uniform(2.0, 4.0) if inside else random.uniform(6.0, 12.0)
        yield random.uniform(0.03, 0.06) if inside else random.uniform(0.85, 1.0)


TRACES = {"walk": walk, "neighbours": neighbours, "tunnels": tunnels}


TRACE = Kind("trace", "traces")


class Trace(NamedTuple):
    """The rate of a link over time, in a file, and what it is like."""

    file: Path
    about: str


def traces() -> dict[str, Trace]:
    """All examples by name: those of this folder, then those of packs."""
    own = {name: Trace(FOLDER / f"{name}.csv", (make.__doc__ or "").strip()) for name, make in TRACES.items()}
    return own | traces_of_packs().rows


@cache
def traces_of_packs() -> Installed[Trace]:
    """Each is read once, so that one that is wrong is left out."""
    return of_packs(TRACE, TRACES, _of_folder)


def _of_folder(folder: Path) -> dict[str, Trace]:
    found: dict[str, Trace] = {}
    for path in sorted((folder / "traces").glob("*")):
        check_free(path.stem, found, TRACE, str(path))
        played_on(path, LINK)
        found[path.stem] = Trace(path, f"{path.name} of {folder.name}")
    return found


CALM = "none"
"""The name of the scenario without changes, to compare curves with."""


def scenario_of(name: str) -> Scenario:
    """`walk@hub--desk`: the example trace `walk` for the rate of the link `hub--desk`, or `none`. Raises
    `SpecError`.
    """
    trace, _, link = name.partition("@")
    if name == CALM:
        return Scenario()
    if trace not in traces() or not link:
        known = ", ".join(f"{one}@LINK" for one in traces())
        raise SpecError(
            f"There is no scenario {name[:60]}: choose one of {known} and {CALM}.",
            [("scenario", "unknown name")],
        )
    return played_on(traces()[trace].file, link)


def played_on(file: Path, link: str) -> Scenario:
    """What changes in a file, of one link that it names or not, as changes of `link`. Raises `SpecError`."""
    text = text_of(file, "the trace")
    made = parse_file(text, str(file), "" if names_links(text, str(file)) else link)
    links = {getattr(change, "link", None) for change in made.changes}
    if len(links) > 1 or None in links:
        raise SpecError(f"{file}: expected changes of one link and of nothing else.")
    return Scenario(changes=tuple(change.model_copy(update={"link": link}) for change in made.changes))


def rows_of(name: str) -> Iterator[str]:
    """The lines of `<name>.csv`; a rate that stays what it is has no line of its own."""
    yield "at_s,link,bit_per_s"
    before = -1.0
    for step, share in enumerate(TRACES[name](Random(name))):
        bit_per_s = round(share * BASE_BIT_PER_S, -4)
        if bit_per_s != before:
            yield f"{step * STEP_S:g},{LINK},{bit_per_s:.0f}"
        before = bit_per_s
