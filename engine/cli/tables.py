"""Print reports as text: compact tables and bars, coloured on a terminal only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TextIO

from rich import box
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from engine.domain.numbers_as_text import shown
from engine.domain.report import Attribution, FromHereOn, LoadReport, NativePart, RunReport
from engine.domain.units import human, human_s
from engine.reports.finding import finding_of, rounded_in_words
from engine.reports.metrics import shown_in, title_of
from engine.reports.participation import alone

WIDTH = 110  # of a pipe or file; a terminal has its own
BAR_CELLS = 24
PARTS = (
    ("compute_s", "compute", "green"),
    ("link_s", "links", "blue"),
    ("staging_s", "staging", "magenta"),
    ("load_s", "loading", "yellow"),
    ("wait_s", "waiting", "bright_black"),
    ("idle_s", "no request", "white"),
)


class PipeConsole(Console):
    """A console that raises `BrokenPipeError` when the reader has closed the pipe: `main` then
    ends quietly.
    """

    def on_broken_pipe(self) -> None:
        raise


def console_for(stream: TextIO) -> Console:
    width = None if stream.isatty() else WIDTH
    return PipeConsole(file=stream, width=width, highlight=False, emoji=False, markup=False)


def show_report(report: RunReport, stream: TextIO) -> None:
    console_for(stream).print(report_group(report))


def report_group(report: RunReport) -> Group:
    """The parts of a report that fit one screen, the most important first."""
    parts: list[RenderableType] = [_headline(report), _badges(report)]
    parts.append(_finding(report))
    if report.text:
        parts.append(Text(_clip(report.text, 400), style="italic"))
    parts.append(_figures(report))
    if report.predictions.from_here_on:
        parts.append(_from_here_on(report.predictions.from_here_on))
    if report.fidelity.valid is None:
        parts += [Text(note) for note in report.fidelity.notes]
    if report.load is not None:
        parts += _load(report.load)
    if report.latency_s > 0:
        parts += _attribution(report.attribution)
    if report.method is not None:
        parts += [Text(line) for line in report.method.lines()]
    parts.append(_devices(report))
    if report.fidelity.native:
        parts.append(_native(report.fidelity.native))
    if any(link.bytes for link in report.links):
        parts.append(_links(report))
    return Group(*parts)


def table(*columns: str, texts: tuple[str, ...] = ()) -> Table:
    """A table: its first column is a name and those in `texts` are prose; the others are numbers, aligned
    right.
    """
    result = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for index, column in enumerate(columns):
        is_text = index == 0 or column in texts
        result.add_column(column, justify="left" if is_text else "right", no_wrap=column not in texts)
    return result


def bar(fraction: float, cells: int = BAR_CELLS) -> str:
    """`bar(0.5, 4)` → `"██░░"`."""
    filled = round(max(0.0, min(1.0, fraction)) * cells)
    return "█" * filled + "░" * (cells - filled)


def _headline(report: RunReport) -> Text:
    spec = report.spec
    text = Text.assemble((spec.name or f"{spec.strategy} on {spec.cluster.name}", "bold"))
    size = f"{len(spec.cluster.devices)} devices"
    only = f" on {name} alone" if (name := alone(report)) else ""
    text.append(f"  {spec.model.name} · {spec.strategy}{only} · {spec.cluster.name} ({size})")
    given = report.world == "emulated" and spec.dilation != "auto"
    dilation = f", dilation {report.dilation:.3g}" if given else ""
    drawn = f" · {words}" if (words := spec.workload.drawn_words) else ""
    drawn += " · no KV cache" * (not spec.workload.kv_cache)
    return text.append(f" · {report.world}{dilation}{drawn} · seed {report.seed}")


def _badges(report: RunReport) -> Text:
    kind = report.outcome.kind
    text = _badge(Text(), kind == "finished", kind.replace("_", " "), kind.replace("_", " "))
    if report.correctness.checked:
        ok = report.correctness.ok
        if ok is None:
            text.append("  ").append(" lossy ", "black on yellow").append(f" {_correctness(report)}")
        else:
            _badge(text.append("  "), ok, "correct", "WRONG").append(f" {_correctness(report)}")
    if report.fidelity.valid is not None:
        _badge(text.append("  "), report.fidelity.valid, "valid", "INVALID").append(f" {_fidelity(report)}")
    return text


def _finding(report: RunReport) -> Text:
    """The report in words; how a run ended that did not finish is red."""
    first, *others = finding_of(report).sentences or ("",)
    style = "" if report.outcome.kind == "finished" else "red"
    return Text.assemble((first, style), " ", " ".join(others))


def _badge(text: Text, good: bool, yes: str, no: str) -> Text:
    return text.append(f" {yes} ", "black on green") if good else text.append(f" {no} ", "white on red")


def _correctness(report: RunReport) -> str:
    facts = report.correctness
    if not facts.ok and facts.why:
        return facts.why
    words = ["same prompt ids"] if facts.prompt_identical else []
    if facts.token_identical is not None:
        words.append("same tokens" if facts.token_identical else "other tokens")
    if facts.ok and facts.why:
        words.append(facts.why)
    if facts.max_rel_error is not None:
        words.append(f"error {facts.max_rel_error:.1e} relative")
    if facts.error_over_rounding is not None:
        words.append(f"{facts.error_over_rounding:.2g} times the reference's own rounding error")
    if facts.kl_mean is not None:
        words.append(f"KL {facts.kl_mean:.2e} nats")
    if facts.top1_agreement is not None:
        words.append(f"the reference would choose {facts.top1_agreement:.0%} of the tokens too")
    if facts.rounded_weights:
        words.append(rounded_in_words(facts.rounded_weights).rstrip("."))
    return ", ".join(words)


def _fidelity(report: RunReport) -> str:
    facts = report.fidelity
    if not facts.valid and facts.why:
        return "; ".join(facts.why)
    words = []
    if facts.model_error_mean is not None:
        words.append(f"compute {facts.model_error_mean:.1%} off its model")
    if facts.compute_error_p95 is not None:
        words.append(f"late by {facts.compute_error_p95:.1%} at most in 95 % of the time")
    if facts.latency_error is not None:
        words.append(f"latency {facts.latency_error:+.1%} of its prediction")
    if facts.link_error_max is not None:
        words.append(f"links within {facts.link_error_max:.1%}")
    if facts.backend:
        words.append(facts.backend)
    return "; ".join([", ".join(words), *facts.notes])


def _figures(report: RunReport) -> Table:
    made = report.predictions
    predicted, before = made.with_all_changes_known, made.before_the_start
    if report.scenario == report.spec.scenario or before is None:
        before = None
    titles = {"predicted before the start": before, "predicted with all changes known": predicted}
    given = {title: one for title, one in titles.items() if one}
    result = table("", "this run", *given, *(["off by"] if predicted else []))
    for metric in shown_in("report"):
        value = metric.compute(report)
        if value is None:
            continue
        foreseen = [getattr(one, metric.name, None) for one in given.values()]
        texts = ["" if one is None else shown(one, metric.unit) for one in (value, *foreseen)]
        off = [f"{value / foreseen[-1] - 1:+.1%}"] if foreseen and foreseen[-1] else []
        result.add_row(metric.title[:1].lower() + metric.title[1:], *texts, *off)
    return result


def _from_here_on(made: Sequence[FromHereOn]) -> Table:
    """What was predicted while the run went on, after each change that was not known before."""
    result = table("predicted from here on", "at", "left", "in all")
    for one in made:
        changes = "one change" if one.changes == 1 else f"{one.changes} changes"
        result.add_row(f"after {changes}", *map(human_s, (one.at_s, one.left_s, one.latency_s)))
    return result


def _load(load: LoadReport) -> list[RenderableType]:
    """What users whose requests wait in a queue see."""
    result = table("of all requests", "mean", "median", "95 %", "99 %")
    for figure, over in (
        ("queue_s", load.queue_s),
        ("ttft_s", load.first_token_s),
        ("per_token_s", load.per_token_s),
        ("answered_s", load.answer_s),
    ):
        if over is not None:
            label = title_of("request", figure)
            result.add_row(label, *(human_s(value) for value in (over.mean, over.p50, over.p95, over.p99)))
    line = (
        f"{load.answered} of {load.arrived} requests answered, {load.answered_per_s:.3g} a second; "
        f"{load.within_objectives} within the objectives, {load.goodput_per_s:.3g} a second; "
        f"{load.mean_queue:.2g} waiting on average, {load.longest_queue} at most"
    )
    return [result, Text(line)]


def _attribution(attribution: Attribution) -> list[RenderableType]:
    total = sum(getattr(attribution, field) for field, _, _ in PARTS)
    strip = Text()
    result = table("where the time went", "", "share")
    for field, label, colour in PARTS:
        seconds = getattr(attribution, field)
        if seconds <= 0:
            continue
        share = seconds / total
        strip.append("█" * max(1, round(share * 60)), style=colour)
        result.add_row(Text(label, style=colour), human_s(seconds), f"{share:.0%}")
    return [strip, result]


def _native(parts: Sequence[NativePart]) -> Table:
    """A run at native speed beside its prediction for this host."""
    result = table("at native speed", "this run", "predicted for this host", "off")
    for part in parts:
        off = f"{part.predicted_s / part.measured_s - 1:+.0%}" if part.measured_s > 0 else ""
        result.add_row(part.name, human_s(part.measured_s), human_s(part.predicted_s), off)
    return result


def _devices(report: RunReport) -> Table:
    busy, waiting, work, memory = (
        title_of("device", name) for name in ("busy_s", "wait_s", "flops", "peak_memory_bytes")
    )
    result = table("device", busy, "", waiting, work, memory, "of")
    for device in report.devices:
        share = device.busy_s / report.latency_s if report.latency_s > 0 else 0.0
        result.add_row(
            device.name,
            human_s(device.busy_s),
            f"{bar(share)} {share:4.0%}",
            human_s(device.wait_s),
            human(device.flops, "FLOP"),
            human(device.peak_memory_bytes, "B"),
            human(device.memory_bytes, "B"),
        )
    return result


def _links(report: RunReport) -> Table:
    is_measured = any(link.achieved_bit_per_s is not None for link in report.links)
    carried, busy = (title_of("link", name) for name in ("bytes", "busy_s"))
    result = table("link", carried, busy, "", "rate", *(["achieved"] if is_measured else []))
    for link in report.links:
        if not link.bytes:
            continue
        share = link.busy_s / report.latency_s if report.latency_s > 0 else 0.0
        achieved = "" if link.achieved_bit_per_s is None else human(link.achieved_bit_per_s, "bit/s")
        result.add_row(
            link.words,
            human(link.bytes, "B"),
            human_s(link.busy_s),
            f"{bar(share)} {share:4.0%}",
            human(link.rate_bit_per_s, "bit/s"),
            *([achieved] if is_measured else []),
        )
    return result


def _clip(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"
