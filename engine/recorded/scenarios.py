"""Read scenario files: timed changes as TOML or JSON, those in the report of an earlier run, or rates.

    [[change]]                           at_s,link,bit_per_s
    at_s = 0.5                           0,hub--laptop,20000000
    kind = "set_rate"                    0.5,hub--laptop,18500000
    link = "hub--laptop"
    bit_per_s = 20e6

A file of the rates of one link (`engine.recorded.rates`) names its link and options behind its own name:
`bus.log@hub--laptop,until_s=600`. Several files stand with ` + ` between them.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

from engine.domain.errors import SpecError
from engine.domain.scenario import Change, Scenario, SetRate
from engine.recorded.files import columns_of, parse_name, parse_options, rows_of, text_of
from engine.recorded.rates import LEAST_BIT_PER_S, RateOptions, Rates, is_iperf3, parse_rates

COLUMNS = ("at_s", "link", "bit_per_s")
DOCUMENTS = (".toml", ".json")
AND = " + "
MAX_CHANGES = 100_000


def read_scenario(name: str) -> Scenario:
    """The scenario in a file, or in several; raises `SpecError` with the file and the field or line."""
    parts = [parse_name(part) for part in each_file(name)]
    return together(
        parse_file(text_of(path, "the scenario"), str(path), link, options).changes
        for path, link, options in parts
    )


def each_file(name: str) -> list[str]:
    """The names of the files, with their links and options, in the name of a scenario."""
    return [part.strip() for part in name.split(AND)]


def together(parts: Iterable[Sequence[Change]]) -> Scenario:
    """The changes of several files in the order of their times."""
    return _in_order(Scenario(changes=tuple(chain.from_iterable(parts))))


def parse_file(text: str, where: str, link: str = "", options: str = "") -> Scenario:
    """A scenario in TOML or JSON, if the name ends so, else a trace of rates, of `link` where it names none.

    Raises `SpecError`.
    """
    if names_links(text, where):
        if link or options:
            raise SpecError(f"{where}: names the links of its changes itself: leave out link and options.")
        if where.endswith(DOCUMENTS):
            return parse_scenario(text, where, is_json=where.endswith(".json"))
        return parse_trace(text, where)
    asked = parse_options(RateOptions, options, where)
    rates = parse_rates(text, where, asked)
    if not link:
        raise SpecError(f"{where}: its rates are of no link: name one behind the file: {where}@LINK.")
    return rates_of_link(rates, link, asked, where)


def names_links(text: str, where: str) -> bool:
    """Whether the changes in a file say of which link they are."""
    if is_iperf3(text):
        return False
    return where.endswith(DOCUMENTS) or set(COLUMNS) <= set(columns_of(text))


def parse_trace(text: str, where: str) -> Scenario:
    """A trace of rates: columns at_s, link, bit_per_s and, if not both, direction; in any order of time."""
    have, need = set(columns_of(text)), set(COLUMNS)
    if not need <= have <= need | {"direction"}:
        raise SpecError(f"{where}: columns are {sorted(have)}, expected at_s, link, bit_per_s and direction.")
    changes = []
    for number, row in rows_of(text, where, COLUMNS):
        given = {key: value for key, value in row.items() if value}
        changes.append(SetRate.parse({"kind": "set_rate", **given}, f"{where}, line {number}"))
    return _in_order(Scenario(changes=tuple(changes)))


def rates_of_link(rates: Rates, link: str, options: RateOptions, where: str) -> Scenario:
    """A change wherever the rate changes, and none below `LEAST_BIT_PER_S`. Raises `SpecError`."""
    changes = tuple(_changes_of(rates, link, options))
    if len(changes) > MAX_CHANGES:
        raise SpecError(
            f"{where}: makes {len(changes):,} changes, expected at most {MAX_CHANGES:,}: give until_s."
        )
    return Scenario(changes=changes)


def _changes_of(rates: Rates, link: str, options: RateOptions) -> Iterator[SetRate]:
    before = -1.0
    for sample in rates.samples:
        bit_per_s = max(sample.bit_per_s, LEAST_BIT_PER_S)
        if bit_per_s != before:
            at_s = round(sample.at_s, 9)
            yield SetRate(at_s=at_s, link=link, bit_per_s=bit_per_s, direction=options.direction)
        before = bit_per_s


def parse_scenario(text: str, where: str, is_json: bool = False) -> Scenario:
    try:
        data = json.loads(text) if is_json else tomllib.loads(text)
    except (json.JSONDecodeError, tomllib.TOMLDecodeError) as error:
        raise SpecError(f"{where}: no valid {'JSON' if is_json else 'TOML'}: {error}.") from error
    except RecursionError:
        raise SpecError(f"{where}: is nested too deeply: expected a list of [[change]] tables.") from None
    return _in_order(Scenario.parse({"changes": _changes(data, where)}, where))


def _in_order(scenario: Scenario) -> Scenario:
    return scenario.model_copy(update={"changes": tuple(sorted(scenario.changes, key=lambda c: c.at_s))})


def _changes(data: Any, where: str) -> Any:
    """The list of changes in a scenario file, a dumped `Scenario` or a `RunReport`."""
    if isinstance(data, list) and data and isinstance(data[0], dict) and {"kind", "dev"} <= data[0].keys():
        raise SpecError(
            f"{where}: is the output of tc -j qdisc, {_qdisc_in_words(data)}: give that to a link of the "
            "cluster; a scenario has [[change]] tables."
        )
    if isinstance(data, dict) and isinstance(data.get("scenario"), dict):
        data = data["scenario"]
    if isinstance(data, dict):
        keys = set(data) & {"change", "changes"}
        if len(keys) == 1 and set(data) == keys:
            return data[keys.pop()]
        if not data:
            return []
    raise SpecError(f"{where}: expected a list of [[change]] tables and nothing else.")


def _qdisc_in_words(rows: list[Any]) -> str:
    """`dev eth0: bit_per_s = 1e+08, delay_s = 0.005, loss_frac = 0.02`."""
    options = [
        row["options"] for row in rows if isinstance(row, dict) and isinstance(row.get("options"), dict)
    ]
    stated = {
        "bit_per_s": [8 * found for each in options if (found := _inner(each, "rate", "rate"))],
        "delay_s": [found for each in options if (found := _inner(each, "delay", "delay"))],
        "loss_frac": [found for each in options if (found := _inner(each, "loss-random", "loss"))],
    }
    said = [f"{name} = {values[0]:g}" for name, values in stated.items() if values]
    return f"dev {str(rows[0]['dev'])[:20]}: {', '.join(said) or 'no rate, delay or loss'}"


def _inner(options: dict[str, Any], name: str, key: str) -> float:
    """A number of one option, which tc states alone or in an object of its own; rates are in byte/s."""
    found = options.get(name)
    found = found.get(key) if isinstance(found, dict) else found
    return float(found) if isinstance(found, int | float) else 0.0
