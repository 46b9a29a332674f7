"""`edgeloom device import`: a row of a device from what a benchmark measured on it.

The row is for `[[device]]` of a cluster file. It is derived: its rates are those with which predictions of
the benchmark's own tests come out as measured (`topologies.rate_fit`), as for the presets. The tests are
predicted with it, and a row that misses one of them is refused.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import tomli_w

from engine.cli.present import check_writable
from engine.domain.cluster import DeviceSpec
from engine.domain.errors import SpecError
from engine.domain.units import human
from engine.models.catalogue import resolve
from engine.models.catalogue import rows as models
from engine.ops.sizes import num_parameters
from engine.recorded.files import text_of
from topologies.benchmarks import Measured, is_mixture, parse_benchmark
from topologies.presets import preset
from topologies.published import PublishedRate
from topologies.published_runs import compared
from topologies.rate_fit import BENCHMARK, fit

READS_FRAC = 0.8
"""The share of its memory rate that a device is assumed to reach while it decodes, where nobody has measured
that rate."""
MISSED = 0.1
"""How far the prediction of one of the benchmark's own tests may be from what was measured."""
LIKE_PARAMETERS = 0.03
"""How far the number of parameters of a model of the catalogue may be from that of the benchmark's."""


class Imported(NamedTuple):
    """A device's row, and what it predicts for the tests that it is made of."""

    device: DeviceSpec
    again: tuple[str, ...]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("import",), help="make a row of a benchmark's output")
    parser.add_argument(
        "file",
        metavar="FILE",
        help="what llama-bench -o json, jsonl, csv or md has written, or CSV with Model, Precision, "
        "Scenario, Result, Units",
    )
    parser.add_argument("--name", default="my-board", help="the device's name in clusters (my-board)")
    parser.add_argument("--like", metavar="PRESET", help="what the benchmark does not tell is a preset's")
    parser.add_argument("--memory", type=float, metavar="BYTES", help="the device's memory, without --like")
    parser.add_argument(
        "--model",
        metavar="NAME|DIRECTORY",
        help="the model that was measured: of the catalogue, or a directory with its config.json",
    )
    parser.add_argument("--output", metavar="FILE", help="write the row to FILE, not to standard output")


def run(args: argparse.Namespace) -> int:
    if args.output:
        check_writable(args.output)
    path = Path(args.file)
    measured = parse_benchmark(text_of(path, "the benchmark"), str(path))
    device, again = device_of(measured, args.name, path.name, args.like, args.memory, args.model)
    row = device.model_dump(mode="json", exclude_defaults=True, exclude_none=True)
    text = "".join(f"# {line}\n" for line in again) + tomli_w.dumps({"device": [row]})
    if args.output:
        Path(args.output).write_text(text, encoding="utf-8")
    else:
        sys.stdout.write(text)
    return 0


def device_of(
    measured: Sequence[Measured],
    name: str,
    source: str,
    like: str | None = None,
    memory_bytes: float | None = None,
    model: str | None = None,
) -> Imported:
    """The device with rates that the best of these rates fit to. Raises `SpecError` if none is."""
    best: dict[tuple[str, float, int, int], Measured] = {}
    for one in measured:
        key = (one.model, one.weight_bits, one.prompt_tokens, one.new_tokens)
        best[key] = max(best.get(key, one), one, key=lambda each: each.tokens_per_s)
    rows = [_published(one, model, source) for one in best.values()]
    spread = max(one.deviation / one.tokens_per_s for one in best.values())
    told = f"derived from {source}: {len(rows)} rates of tokens, each ± {spread:.1%} (standard deviation)"
    if like is not None:
        base = preset(like)
        told = f"format_rates {told}; all else is that of {like} ({base.basis_in_words}): {base.source}"
    else:
        base = _bare(list(best.values()), rows, memory_bytes)
        told += f"; memory read at {READS_FRAC:.0%} of its rate while decoding, assumed; the rest by default"
    derived = {
        "name": name,
        "title": f"{name}, derived from {source}",
        "basis": "derived from a benchmark",
        "assumed_efficiency": None,
        "source": told,
        "price_usd": None,
        "price_source": "",
        "format_rates": (),
    }
    made = fit(base.model_copy(update=derived), rows, BENCHMARK, memory_rises=True)
    if made.memory_byte_per_s > base.memory_byte_per_s:
        raised = (human(rate, "B/s") for rate in (base.memory_byte_per_s, made.memory_byte_per_s))
        told += "; memory rate {} raised to {}, which decoding needs".format(*raised)
        made = made.model_copy(update={"source": told})
    return Imported(DeviceSpec.parse(made.model_dump(mode="json"), "--name"), _predicted_again(made, rows))


def _predicted_again(device: DeviceSpec, rows: Sequence[PublishedRate]) -> tuple[str, ...]:
    """Every test as measured and as predicted with `device`. Raises `SpecError` if one is missed."""
    found = [one for row in rows for one in compared(device, row)]
    lines = tuple(
        f"{one.row.model}, {one.what}: {one.published:.4g} tokens/s measured, {one.predicted:.4g} predicted"
        for one in found
    )
    missed = [line for one, line in zip(found, lines, strict=True) if abs(one.ratio - 1) > MISSED]
    if missed:
        raise SpecError(
            f"{device.name}: no row of this device gives what was measured, to {MISSED:.0%}: "
            f"{'; '.join(missed)}. Import the tests of one model and one setting alone, check --model, or "
            "measure again."
        )
    return lines


def _published(one: Measured, model: str | None, source: str) -> PublishedRate:
    is_prompt = one.new_tokens == 0
    return PublishedRate(
        id=source,
        board="",
        device="",
        runtime="",
        model=one.model,
        shape=_given(one, model) if model else _shape(one),
        format="",
        weight_bits=one.weight_bits,
        prompt_tokens=one.prompt_tokens,
        prompt_tokens_per_s=one.tokens_per_s if is_prompt else None,
        decode_tokens_per_s=None if is_prompt else one.tokens_per_s,
        evaluation_s=None,
        transfer_s=None,
        nodes=1,
        source=source,
        note="",
    )


def _shape(one: Measured) -> str:
    """The model of the catalogue with this name, or one of its kind with as many parameters. Raises
    `SpecError`.
    """
    known = [row for row in models() if row.causal and is_mixture(row.name) == is_mixture(one.model)]
    named = [row for row in known if row.name == one.model]
    if not named and one.num_parameters and known:
        near = min(known, key=lambda row: abs(row.num_parameters / one.num_parameters - 1))
        named = [near] if abs(near.num_parameters / one.num_parameters - 1) <= LIKE_PARAMETERS else []
    if not named:
        mixture = "is a mixture of experts, and no mixture" if is_mixture(one.model) else "no model"
        separator = " " if is_mixture(one.model) else ": "
        raise SpecError(
            f"{one.model[:60]}{separator}{mixture} of the catalogue has its {one.num_parameters:,.0f} "
            "parameters: name the model with --model, by its name or as a DIRECTORY with its config.json.",
            [("model", "unknown")],
        )
    return named[0].name


def _given(one: Measured, name: str) -> str:
    """The model that a person names for a test. Raises `SpecError` if it cannot be the one measured."""
    spec, _ = resolve(name, "random")
    if is_mixture(one.model) and not spec.num_experts:
        raise SpecError(
            f"{one.model[:60]}: is a mixture of experts, of which a token reads a part, and --model {name} "
            "is none: its rates would be too high. Name a mixture, or import the tests of a dense model."
        )
    return name


def _bare(best: Sequence[Measured], rows: Sequence[PublishedRate], memory_bytes: float | None) -> DeviceSpec:
    """A device of which only these rates are known."""
    if memory_bytes is None:
        raise SpecError("--memory is missing: no benchmark tells it: give it, or --like PRESET.")
    counts = [num_parameters(resolve(row.shape, "random")[0]) for row in rows]
    reads = [
        count * one.weight_bits / 8 * one.tokens_per_s
        for one, count in zip(best, counts, strict=True)
        if one.new_tokens
    ]
    if not reads:
        raise SpecError("The benchmark has no test of decoding: add one (-n 128), or give --like PRESET.")
    flops = [2 * count * one.tokens_per_s for one, count in zip(best, counts, strict=True)]
    return DeviceSpec(
        name="bare",
        flop_per_s=float(f"{max(flops):.3g}"),
        memory_bytes=memory_bytes,
        memory_byte_per_s=float(f"{max(reads) / READS_FRAC:.3g}"),
    )
