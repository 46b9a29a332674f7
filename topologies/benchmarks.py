"""Rates of tokens that a benchmark measured on one device: `llama-bench`, and tables in the manner of MLPerf.

`llama-bench` writes JSON, JSONL, CSV or a table of Markdown (`-o`). A table in the manner of MLPerf is CSV
with Model, Precision, Scenario, Result and Units; of its scenarios only SingleStream tells a token's time.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from engine.domain.errors import SpecError
from engine.recorded.files import columns_of, number_of, rows_of

LLAMA_BENCH = ("model_type", "model_size", "model_n_params", "n_prompt", "n_gen", "avg_ts", "stddev_ts")
MLPERF = ("Model", "Precision", "Scenario", "Result", "Units")
BITS = {"fp32": 32.0, "fp16": 16.0, "bf16": 16.0, "fp8": 8.0, "int8": 8.0, "int4": 4.0, "fp4": 4.0}
FORMATS = "JSON, JSONL, CSV or Markdown of llama-bench, or CSV with " + ", ".join(MLPERF)
_SIZE = {"KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30}
_COUNT = {"M": 1e6, "B": 1e9}
_MIXTURE = re.compile(
    r"moe|experts?\b|mixtral|gpt-?oss|dbrx|deepseek-?(2|3|v2|v3)|\d+ ?x ?\d+(\.\d+)?B|\d+B ?x ?\d+E"
    r"|(?<![a-z0-9])A\d+(\.\d+)?B",
    re.IGNORECASE,
)
DLLAMA = "distributed-llama's log"
_TEST = re.compile(r"(pp|tg) ?(\d+)(?: @ d(\d+))?")


class Measured(NamedTuple):
    """Tokens per second of a prompt (`new_tokens` is 0) or of decoding, and their standard deviation.

    `num_parameters` is 0 where the table names the model alone.
    """

    model: str
    num_parameters: float
    weight_bits: float
    prompt_tokens: int
    new_tokens: int
    tokens_per_s: float
    deviation: float


def is_mixture(name: str) -> bool:
    """Whether a model's name or label says that it is a mixture of experts: A3B, MoE, 8x7B, ..."""
    return _MIXTURE.search(name) is not None


def parse_benchmark(text: str, where: str) -> tuple[Measured, ...]:
    """All tests of a prompt alone or of decoding alone, at the start of the context. Raises `SpecError`."""
    if re.search(r"(Pred|🔶).*\bSync\b.*\bSent\b", text):
        raise SpecError(
            f"{where}: is {DLLAMA}, whose times are of several devices and the network between them: make a "
            "device of a run on one, with llama-bench, and predict the cluster of such devices beside it."
        )
    names = set(columns_of(text))
    if text.lstrip().startswith(("[", "{")):
        found = list(_of_objects(_objects(text, where)))
    elif names.issuperset(LLAMA_BENCH):
        rows = rows_of(text, where, LLAMA_BENCH)
        found = list(_of_objects((f"{where}, line {number}", row) for number, row in rows))
    elif names.issuperset(MLPERF):
        found = list(_of_mlperf(text, where))
    elif "|" in text:
        found = list(_of_markdown(text, where))
    else:
        raise SpecError(f"{where}: is no benchmark that is known here: expected {FORMATS}.")
    if not found:
        raise SpecError(
            f"{where}: has no test of a prompt or of decoding alone: run llama-bench -p 512 -n 128."
        )
    return tuple(found)


def _objects(text: str, where: str) -> Iterator[tuple[str, Any]]:
    try:
        if text.lstrip().startswith("["):
            yield from ((f"{where}, test {index}", row) for index, row in enumerate(json.loads(text), 1))
            return
        for number, line in enumerate(text.splitlines(), 1):
            if line.strip():
                yield f"{where}, line {number}", json.loads(line)
    except (json.JSONDecodeError, RecursionError) as error:
        raise SpecError(f"{where}: is no JSON: {error}.") from error


def _of_objects(rows: Iterator[tuple[str, Any]]) -> Iterator[Measured]:
    for place, row in rows:
        if not isinstance(row, dict) or (missing := [name for name in LLAMA_BENCH if name not in row]):
            lacks = missing[0] if isinstance(row, dict) else "columns"
            raise SpecError(f"{place}: has no {lacks}: expected a test of llama-bench.")
        size, count, prompt, new, rate, deviation = (
            number_of(str(row[name]), f"{place}, {name}") for name in LLAMA_BENCH[1:]
        )
        depth = number_of(str(row.get("n_depth", 0)), f"{place}, n_depth")
        _check_alone(place, str(row.get("backends", "")), str(row.get("devices", "")))
        if not depth and bool(prompt) != bool(new):
            bits = 8 * size / max(count, 1.0)
            name = str(row["model_type"])
            yield _checked(place, name, count, bits, int(prompt), int(new), rate, deviation)


def _of_markdown(text: str, where: str) -> Iterator[Measured]:
    names: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        place = f"{where}, line {number}"
        if not line.strip().startswith("|") or set(line) <= set("|-: "):
            continue
        if {"model", "size", "params", "test", "t/s"} <= set(cells):
            names = cells
            continue
        if len(cells) != len(names):
            raise SpecError(f"{place}: expected the columns model, size, params, test and t/s.")
        row = dict(zip(names, cells, strict=True))
        _check_alone(place, row.get("backend", ""), row.get("dev", ""))
        test = _TEST.fullmatch(row["test"])
        if test is None or int(test[3] or 0):
            continue
        rate, _, deviation = row["t/s"].partition("±")
        count, size = _amount(row["params"], _COUNT, place), _amount(row["size"], _SIZE, place)
        tokens = int(test[2])
        prompt, new = (tokens, 0) if test[1] == "pp" else (0, tokens)
        yield _checked(
            place,
            row["model"],
            count,
            8 * size / max(count, 1.0),
            prompt,
            new,
            number_of(rate.strip(), f"{place}, t/s"),
            number_of(deviation.strip() or "0", f"{place}, t/s"),
        )


def _check_alone(place: str, backend: str, devices: str) -> None:
    """Check that a test ran on one machine; raises `SpecError` for one over RPC."""
    if re.search(r"\bRPC\d*\b", f"{backend} {devices}", re.IGNORECASE):
        raise SpecError(
            f"{place}: was measured over RPC ({devices or backend}), on several machines and the network "
            "between them, which are no single device: import a test of each machine alone."
        )


def _amount(text: str, units: dict[str, float], place: str) -> float:
    value, _, unit = text.partition(" ")
    if unit not in units:
        raise SpecError(f"{place}: expected a number and one of {', '.join(units)}, got {text[:40]!r}.")
    return number_of(value, place) * units[unit]


def _of_mlperf(text: str, where: str) -> Iterator[Measured]:
    for number, row in rows_of(text, where, MLPERF):
        place = f"{where}, line {number}"
        bits = BITS.get(row["Precision"].lower())
        if bits is None:
            raise SpecError(f"{place}, Precision: expected one of {', '.join(BITS)}.")
        if row["Scenario"].lower() != "singlestream" or row["Units"].lower() != "tokens/s":
            raise SpecError(
                f"{place}: is {row['Scenario'][:40]} in {row['Units'][:40]}, expected SingleStream in "
                "Tokens/s: with many requests at once nobody knows how long one token takes."
            )
        rate = number_of(row["Result"], f"{place}, Result")
        yield _checked(place, row["Model"], 0.0, bits, 0, 128, rate, 0.0)


def _checked(place: str, *values: Any) -> Measured:
    found = Measured(*values)
    if not found.tokens_per_s or not found.weight_bits:
        raise SpecError(f"{place}: expected rates and sizes of more than 0.")
    return found
