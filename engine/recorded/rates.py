"""The rate of one link over time, as other programs and public data sets record it.

| format | lines |
| --- | --- |
| Mahimahi | the millisecond in which one packet of 1500 bytes may pass |
| HSDPA (Riiser et al., MMSys 2013) | time, ms, latitude, longitude, bytes, ms that these bytes took |
| seconds and Mbit/s (as Pensieve and others pass traces on) | two numbers |
| FCC Measuring Broadband America | CSV with unit_id, dtime, bytes_sec |
| 5G and 4G of UCC, Cork (Raca et al., MMSys 2020) | CSV with Timestamp, DL_bitrate, UL_bitrate |
| Lumos5G (Narayanan et al., IMC 2020) | CSV with run_num, seq_num, Throughput |
| iperf3 --json | JSON with start, intervals, end |
| plain | CSV with at_s, bit_per_s |
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from pydantic import Field, model_validator

from engine.domain.errors import SpecError
from engine.domain.links import Direction
from engine.domain.values import NonNegative, Positive, Value
from engine.recorded.files import columns_of, moment_of, number_of, numbers_of, rows_of

PACKET_BYTES = 1500
STEP_S = 0.5
LEAST_BIT_PER_S = 12_000.0
"""One packet of 1500 bytes a second: the rate where a file has nothing for a while. Packets wait, and are not
lost, so that no program takes an empty second for the end of a device.
"""
MAX_SAMPLES = 2_000_000
FORMATS = (
    "iperf3 --json, Mahimahi, HSDPA, FCC, UCC 5G, Lumos5G, two columns of s and Mbit/s, or CSV of at_s and "
    "bit_per_s"
)


class RateOptions(Value):
    """What a person may say of a file of rates.

    direction: the direction of the link that gets the rates. upload: the rates are those of sending (UCC).
    only: the unit (FCC) or the run (Lumos5G), where a file has several. step_s: Mahimahi's packets are
    counted over so long (0.5). each_s: lines follow each other so, whatever their times are. from_s, until_s:
    the part of the file that is played; a file that ends before `until_s` is repeated.
    """

    direction: Direction = "both"
    upload: bool = False
    only: str = ""
    step_s: Positive | None = None
    each_s: Positive | None = None
    from_s: NonNegative = 0.0
    until_s: Positive | None = Field(default=None)

    @model_validator(mode="after")
    def _some_time_is_left(self) -> RateOptions:
        if self.until_s is not None and self.until_s <= self.from_s:
            raise ValueError(f"until_s is {self.until_s:g}, expected more than from_s, {self.from_s:g}")
        return self


class Sample(NamedTuple):
    """The rate from `at_s` on."""

    at_s: float
    bit_per_s: float


class Rates(NamedTuple):
    """Rates one after the other, the first from 0 s on, until `end_s`."""

    samples: tuple[Sample, ...]
    end_s: float

    def until(self, index: int) -> float:
        """When the rate number `index` ends."""
        return self.samples[index + 1].at_s if index + 1 < len(self.samples) else self.end_s


def parse_rates(text: str, where: str, options: RateOptions) -> Rates:
    """The rates in a file of any of the formats, told apart by the first line. Raises `SpecError`."""
    read = _reader_of(text, where)
    for name, readers in FITS.items():
        if getattr(options, name) and read not in readers:
            raise SpecError(f"{where}: the option {name} does not fit this file: leave it out.")
    rates = read(text, where, options)
    if not rates.samples:
        raise SpecError(f"{where}: has no rates: expected {FORMATS}.")
    return _part(rates, options, where)


def _reader_of(text: str, where: str) -> Callable[[str, str, RateOptions], Rates]:
    if is_iperf3(text):
        return _iperf3
    names = set(columns_of(text))
    for needed, read in TABLES.items():
        if names.issuperset(needed):
            return read
    first = next((line for line in text.splitlines() if line.strip()), "")
    read_numbers = NUMBERS.get(len(first.split()))
    if read_numbers is None or "," in first:
        raise SpecError(f"{where}: is in no format of rates that is known here: expected {FORMATS}.")
    return read_numbers


# One function per format --------------------------------------------------------------------------
def _mahimahi(text: str, where: str, options: RateOptions) -> Rates:
    """All packets of each step; the file ends with the millisecond of its last packet."""
    step_ms = 1e3 * (options.step_s or STEP_S)
    packets: dict[int, int] = {}
    before = last_ms = 0.0
    for number, (at_ms,) in numbers_of(text, where, 1):
        if at_ms < before or at_ms != int(at_ms):
            raise SpecError(
                f"{where}, line {number}: expected a whole number of milliseconds, at least that of the line "
                f"before, {before:g}, got {at_ms:g}."
            )
        before = last_ms = at_ms
        step = max(0, math.ceil(at_ms / step_ms) - 1)  # the packet of 500 ms ends the step before it
        packets[step] = packets.get(step, 0) + 1
    if not last_ms:
        raise SpecError(f"{where}: has no packet after 0 ms, so it lasts no time: expected later ones.")
    _at_most(max(packets, default=0), where)
    samples = []
    for step in range(max(packets) + 1):
        length_ms = min(step_ms, last_ms - step * step_ms)
        samples.append(Sample(step * step_ms / 1e3, packets.get(step, 0) * PACKET_BYTES * 8e3 / length_ms))
    return Rates(tuple(samples), last_ms / 1e3)


def _hsdpa(text: str, where: str, options: RateOptions) -> Rates:
    """A line tells of the time before it."""
    samples: list[Sample] = []
    start_s = end_s = None
    for number, (_, at_ms, _, _, count, length_ms) in numbers_of(_unsigned(text), where, 6):
        if not length_ms or (end_s is not None and at_ms / 1e3 <= end_s):
            raise SpecError(f"{where}, line {number}: expected a later time, and ms of more than 0.")
        begins_s = (at_ms - length_ms) / 1e3
        start_s = begins_s if start_s is None else start_s
        begins_s = max(begins_s, end_s or begins_s)
        end_s = at_ms / 1e3
        samples.append(Sample(begins_s - start_s, count * 8e3 / length_ms))
    return Rates(tuple(samples), (end_s or 0.0) - (start_s or 0.0))


def _unsigned(text: str) -> str:
    """Without the signs of places west and south, which no rate depends on."""
    return text.replace(" -", " ").replace("\t-", "\t")


def _pairs(text: str, where: str, options: RateOptions) -> Rates:
    found = ((number, at_s, rate * 1e6) for number, (at_s, rate) in numbers_of(text, where, 2))
    return _in_time(found, where, options.each_s)


def _fcc(text: str, where: str, options: RateOptions) -> Rates:
    return _of_one(text, where, options, ("unit_id", "dtime", "bytes_sec"), moment_of, 8.0)


def _lumos(text: str, where: str, options: RateOptions) -> Rates:
    return _of_one(text, where, options, ("run_num", "seq_num", "Throughput"), number_of, 1e6)


def _of_one(
    text: str,
    where: str,
    options: RateOptions,
    columns: tuple[str, str, str],
    time_of: Callable[[str, str], float],
    factor: float,
) -> Rates:
    """The lines of one of those who recorded a file together: whose, when, and how much."""
    whose, when, rate = columns
    only = options.only
    found: dict[str, list[tuple[int, float, float]]] = {}
    for number, row in rows_of(text, where, columns):
        if not only or row[whose] == only:
            place = f"{where}, line {number}"
            at_s, value = time_of(row[when], f"{place}, {when}"), number_of(row[rate], f"{place}, {rate}")
            found.setdefault(row[whose], []).append((number, at_s, value * factor))
    if len(found) != 1:
        some = ", ".join(list(found)[:5]) or "no line"
        asked = f"only={only}" if only else f"only=… for one {whose}"
        raise SpecError(f"{where}: has {len(found)} of {whose} ({some}): add the option {asked} of those.")
    return _in_time(sorted(*found.values(), key=lambda line: line[1]), where, options.each_s)


def _ucc(text: str, where: str, options: RateOptions) -> Rates:
    """kbit/s; a line with - has no rate, and the rate before it goes on."""
    rate = "UL_bitrate" if options.upload else "DL_bitrate"
    found: dict[float, tuple[int, float, float]] = {}
    for number, row in rows_of(text, where, ("Timestamp", rate)):
        place = f"{where}, line {number}"
        at_s = moment_of(row["Timestamp"], f"{place}, Timestamp", "%Y.%m.%d_%H.%M.%S")
        if row[rate] not in ("-", ""):
            found[at_s] = (number, at_s, number_of(row[rate], f"{place}, {rate}") * 1e3)
    return _in_time(found.values(), where, options.each_s)


def is_iperf3(text: str) -> bool:
    """Whether this is what `iperf3 --json` prints."""
    return text.lstrip().startswith("{") and all(f'"{key}"' in text for key in ("start", "intervals", "end"))


def _iperf3(text: str, where: str, options: RateOptions) -> Rates:
    """The sum of all streams in every interval but the omitted ones."""
    try:
        sums = [each["sum"] for each in json.loads(text)["intervals"]]
        found = [
            (number, float(one["start"]), float(one["bits_per_second"]))
            for number, one in enumerate(sums, 1)
            if not one.get("omitted")
        ]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise SpecError(f"{where}: has no intervals with a sum, as iperf3 --json prints them.") from error
    return _in_time(found, where, options.each_s)


def _plain(text: str, where: str, options: RateOptions) -> Rates:
    found = []
    for number, row in rows_of(text, where, ("at_s", "bit_per_s")):
        place = f"{where}, line {number}"
        at_s = number_of(row["at_s"], f"{place}, at_s")
        found.append((number, at_s, number_of(row["bit_per_s"], f"{place}, bit_per_s")))
    return _in_time(found, where, options.each_s)


TABLES: dict[tuple[str, ...], Callable[[str, str, RateOptions], Rates]] = {
    ("Timestamp", "DL_bitrate"): _ucc,
    ("run_num", "seq_num", "Throughput"): _lumos,
    ("unit_id", "dtime", "bytes_sec"): _fcc,
    ("at_s", "bit_per_s"): _plain,
}
"""The readers by the columns that tell a format."""
NUMBERS = {1: _mahimahi, 2: _pairs, 6: _hsdpa}
"""The readers of files without names of columns, by how many there are."""
FITS = {
    "step_s": (_mahimahi,),
    "upload": (_ucc,),
    "only": (_fcc, _lumos),
    "each_s": (_fcc, _lumos, _ucc, _plain, _pairs, _iperf3),
}
"""The readers of the formats that an option is for, where it is not for all."""


# What they share ----------------------------------------------------------------------------------
def _in_time(lines: Iterable[tuple[int, float, float]], where: str, each_s: float | None) -> Rates:
    """Samples from the time of the first; the last lasts as long as the one before it, or a second."""
    samples: list[Sample] = []
    start_s = 0.0
    for index, (number, at_s, bit_per_s) in enumerate(lines):
        at_s = at_s if each_s is None else index * each_s
        start_s = start_s if samples else at_s
        if samples and at_s - start_s <= samples[-1].at_s:
            raise SpecError(f"{where}, line {number}: its time is not after that of the line before.")
        samples.append(Sample(at_s - start_s, bit_per_s))
        _at_most(len(samples), where)
    if not samples:
        return Rates((), 0.0)
    last_s = samples[-1].at_s - samples[-2].at_s if len(samples) > 1 else each_s or 1.0
    return Rates(tuple(samples), samples[-1].at_s + last_s)


def _part(rates: Rates, options: RateOptions, where: str) -> Rates:
    """The asked part of the file, from 0 s on, repeated up to `until_s`."""
    until_s = rates.end_s if options.until_s is None else options.until_s
    if options.from_s >= rates.end_s:
        raise SpecError(f"{where}: lasts {rates.end_s:g} s, and from_s is {options.from_s:g}: give less.")
    _at_most(math.ceil(until_s / rates.end_s) * len(rates.samples), where)
    return Rates(tuple(_played(rates, options.from_s, until_s)), until_s - options.from_s)


def _played(rates: Rates, from_s: float, until_s: float) -> Iterator[Sample]:
    lap_s = 0.0
    while lap_s < until_s:
        for index, sample in enumerate(rates.samples):
            begins_s, ends_s = lap_s + sample.at_s, lap_s + rates.until(index)
            if ends_s > from_s and begins_s < until_s:
                yield Sample(max(begins_s - from_s, 0.0), sample.bit_per_s)
        lap_s += rates.end_s


def _at_most(count: int, where: str) -> None:
    if count > MAX_SAMPLES:
        raise SpecError(
            f"{where}: has more than {MAX_SAMPLES:,} rates: take a part of it, or a longer step_s."
        )
