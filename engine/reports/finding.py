"""A report in words: how long it took, where the time went, what the changes did, and whether to believe it.

Every sentence is derived from figures of the report and left out where the report does not have them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest

from engine.domain.finding import ChangeEffect, Finding
from engine.domain.report import Attribution, LoadReport, Outcome, Recovery, RoundedWeights, RunReport
from engine.domain.scenario import DropDevice, FreezeDevice, JoinDevice
from engine.domain.units import between, human_s
from engine.reports.effects import effects_of
from engine.reports.participation import unfelt_text

PARTS = {
    "compute_s": "computing",
    "link_s": "links",
    "staging_s": "copies between accelerator and memory",
    "load_s": "loading weights and rows",
    "wait_s": "waiting",
}
NAMED_FROM_FRAC = 0.05
"""The least part of the time that is a finding."""
SAME_FRAC = 0.05
"""A change of the time of a token by less is none, and a prediction that is off by less was right."""
CHANGES_NAMED = 3
DEVICES_NAMED = 3
RATE_COUNTS_FRAC = 0.25
"""Rates do not limit the run where the busiest link sends for less of the time that links took."""


def finding_of(report: RunReport) -> Finding:
    """What a person should know first. Sentences end with a full stop."""
    effects = effects_of(report.scenario.changes, report.requests)
    told = [
        effect
        for effect, change in zip(
            effects, sorted(report.scenario.changes, key=lambda change: change.at_s), strict=True
        )
        if not isinstance(change, DropDevice | FreezeDevice | JoinDevice)
    ]
    sentences = [
        *_ending(report.outcome),
        *_duration(report),
        *_left_out(report),
        *_where(report),
        *_bottleneck(report),
        *(_recovered(*pair) for pair in zip_longest(report.recoveries, report.recoveries[1:])),
        *_unfelt(report),
        *_changed(told),
        *_predicted(report),
        *_planned_better(report),
        *_uncertain(report),
        *_doubts(report),
    ]
    return Finding(sentences=tuple(sentences), changes=effects)


def _uncertain(report: RunReport) -> Iterator[str]:
    if report.uncertainty is None:
        return
    if report.uncertainty.latency_s is not None:
        fast_s, slow_s = report.uncertainty.latency_s
        ends = between(human_s(fast_s), human_s(slow_s))
        yield f"Real boards are expected to take {ends}: {report.uncertainty.basis}."
    else:
        yield f"Real boards: {report.uncertainty.basis}."


def _ending(outcome: Outcome) -> Iterator[str]:
    if outcome.kind != "finished":
        yield _sentence(outcome.sentence or f"The run {outcome.in_words}")


def _duration(report: RunReport) -> Iterator[str]:
    finished = report.outcome.kind == "finished"
    num_tokens = sum(len(request.token_s) for request in report.requests)
    took = human_s(report.latency_s)
    if report.latency_s <= 0:
        if not finished and report.spec.workload.new_tokens > 0:
            yield "No token came before that."
        return
    if report.load is not None:
        yield from _served(report.load, took)
        return
    requests = _count(len(report.requests), "request")
    if not finished:
        yield f"Until then {_count(num_tokens, 'token')} came in {took}."
    elif num_tokens == 0:
        yield f"{_capital(requests)} took {took}."
    elif num_tokens == 1:
        yield f"{_capital(_count(1, 'token'))} took {took}."
    else:
        of = "" if len(report.requests) == 1 else f"{requests} with "
        mean = "" if len(report.requests) == 1 else " on average"
        each = f", then {human_s(report.tpot_s)} each" if report.tpot_s > 0 else ""
        count = _count(num_tokens, "token")
        yield f"{_capital(of + count)} took {took}: {human_s(report.ttft_s)} until the first{mean}{each}."


def _served(load: LoadReport, took: str) -> Iterator[str]:
    if load.arrived == 1:
        yield f"The request was {'answered in' if load.answered else 'not answered in'} {took}."
        return
    were = "was" if load.answered == 1 else "were"
    requests = f"{load.answered} of {_count(load.arrived, 'request')} {were} answered"
    yield f"{requests} in {took}, {load.answered_per_s:.3g} a second."
    if load.answer_s is None:
        return
    waited = f", of which {human_s(load.queue_s.p50)} in the queue" if load.queue_s else ""
    slow = f"; one in twenty took longer than {human_s(load.answer_s.p95)}" if load.answered >= 20 else ""
    yield f"The median request took {human_s(load.answer_s.p50)}{waited}{slow}."
    if load.within_objectives < load.answered:
        share = load.within_objectives / load.answered
        yield f"{share:.0%} of the answers kept the objectives.".replace("%", " %")


def _left_out(report: RunReport) -> Iterator[str]:
    """Workers without weights and work, where the plan of the start is the only one."""
    if report.plan is None or report.recoveries:
        return
    if any(isinstance(change, JoinDevice) for change in report.scenario.changes):
        return
    cluster = report.spec.cluster
    used = {work.device for work in report.plan.work} | {held.device for held in report.plan.holdings}
    names = [cluster.devices[rank].name for rank in cluster.workers if rank not in used]
    if len(names) > DEVICES_NAMED:
        yield f"The plan does not use {len(names)} of {len(cluster.workers)} devices."
    elif names:
        yield f"The plan does not use {_listed(names)}."


def _unfelt(report: RunReport) -> Iterator[str]:
    if text := unfelt_text(report):
        yield text


def _where(report: RunReport) -> Iterator[str]:
    """The parts of the time, the largest first. Time without a request is no part of it."""
    parts = _shares(report.attribution)
    if not parts:
        return
    idle_s = report.attribution.idle_s
    of = "the time"
    if idle_s >= NAMED_FROM_FRAC * report.latency_s:
        yield f"For {_share(idle_s, report)} of the time there was no request."
        of = "the rest"
    name, share = parts[0]
    if share >= 0.995:
        yield f"All of {of} went to {name}."
        return
    named = [
        f"{_percent(share)} of {of} went to {name}",
        *(f"{_percent(share)} to {name}" for name, share in parts[1:] if share >= NAMED_FROM_FRAC),
    ]
    yield _sentence(_listed(named))


def _shares(attribution: Attribution) -> list[tuple[str, float]]:
    total_s = sum(getattr(attribution, field) for field in PARTS)
    if total_s <= 0:
        return []
    shares = [(name, getattr(attribution, field) / total_s) for field, name in PARTS.items()]
    return sorted(shares, key=lambda part: -part[1])


def _bottleneck(report: RunReport) -> Iterator[str]:
    """The busiest device or direction of a link, where several could be it."""
    parts = _shares(report.attribution)
    if not parts or report.latency_s <= 0:
        return
    largest, _ = parts[0]
    if largest == PARTS["compute_s"] and len(report.devices) > 1:
        first, second, *_ = sorted(report.devices, key=lambda device: -device.busy_s)
        if second.busy_s <= 0:
            yield f"Only {first.name} computed."
        else:
            next_one = "the other device" if len(report.devices) == 2 else "the next busiest"
            yield (
                f"{first.name} computed in {_share(first.busy_s, report)} of the time, "
                f"{next_one}, {second.name}, in {_share(second.busy_s, report)}."
            )
    used = [link for link in report.links if link.busy_s > 0]
    if largest == PARTS["link_s"] and used:
        busiest = max(used, key=lambda link: link.busy_s)
        sending, name = _share(busiest.busy_s, report), busiest.words
        if busiest.busy_s < RATE_COUNTS_FRAC * report.attribution.link_s:
            begun = f"Delays cost more than rates: the busiest link, {name}"
            yield f"{begun}, was sending in only {sending} of the time."
        else:
            yield f"The busiest link, {name}, was sending in {sending} of the time."


def _recovered(recovery: Recovery, following: Recovery | None) -> str:
    if recovery.how == "joined":
        begun = f"{recovery.device} joined at {human_s(recovery.at_s)}"
    else:
        begun = f"{recovery.device} was {recovery.how} at {human_s(recovery.at_s)}"
        begun += f", which was detected {human_s(recovery.detect_s)} later"
    plan = "a new plan was made" if recovery.replanned else "the plan was kept"
    if recovery.rebuild_s is None and following:
        how = "joined" if following.how == "joined" else f"was {following.how}"
        return f"{begun}; {plan}, and {following.device} {how} before another token came."
    if recovery.rebuild_s is None:
        return f"{begun}; {plan}, and no token came after it."
    pause_s = recovery.detect_s + recovery.replan_s + recovery.reload_s + recovery.rebuild_s
    return f"{begun}; {plan}, and the next token came {human_s(pause_s)} after it."


def _changed(effects: Sequence[ChangeEffect]) -> Iterator[str]:
    """The changes with the largest effects, in the order of their times."""
    known = [(_ratio(effect), effect) for effect in effects]
    largest = sorted((pair for pair in known if pair[0] is not None), key=lambda pair: -(pair[0] or 0.0))
    named = [effect for _, effect in largest[:CHANGES_NAMED]]
    for effect in effects:
        if effect not in named or effect.before_s is None or effect.after_s is None:
            continue
        begun = f"{_capital(effect.what)} at {human_s(effect.at_s)}"
        if (_ratio(effect) or 1.0) < 1 + SAME_FRAC:
            yield f"{begun} left the time of a token at {human_s(effect.after_s)}."
        else:
            before, after = human_s(effect.before_s), human_s(effect.after_s)
            yield f"{begun} changed the time of a token from {before} to {after}."
    rest = len(largest) - len(named)
    if rest:
        yield f"{_capital(_count(rest, 'further change'))} had smaller effects."
    unknown = len(effects) - len(largest)
    if unknown:
        changes = _count(unknown, "change")
        yield f"The effect of {changes} is not known: no token came before or after."


def _ratio(effect: ChangeEffect) -> float | None:
    """The factor by which a token became longer or shorter, at least 1; None if it is not known."""
    if not effect.before_s or not effect.after_s:
        return None
    return max(effect.after_s / effect.before_s, effect.before_s / effect.after_s)


def _predicted(report: RunReport) -> Iterator[str]:
    """Sentences about the prediction of a finished run; any other is as long as it was allowed to be."""
    known = report.predictions.with_all_changes_known
    if known is None or known.latency_s <= 0 or report.latency_s <= 0:
        return
    if report.outcome.kind != "finished":
        return
    off = report.latency_s / known.latency_s - 1
    knowing = " with all changes known" if report.scenario.changes else ""
    expected = f"The prediction{knowing} was {human_s(known.latency_s)}"
    if abs(off) < SAME_FRAC:
        yield f"{expected}; the run was within {_percent(SAME_FRAC)} of it."
    else:
        yield f"{expected}; the run took {_percent(abs(off))} {'longer' if off > 0 else 'less time'}."


def _planned_better(report: RunReport) -> Iterator[str]:
    """The rule of the plan, and what the method's best plan would give, beside the prediction of this one."""
    if report.rule:
        yield report.rule
    best_s, known = report.with_best_planner_s, report.predictions.with_all_changes_known
    if best_s:
        saved = min(0.99, 1 - best_s / (known.latency_s if known else report.latency_s))
        yield f"A better split (planner=best) would save {_percent(saved)}: {human_s(best_s)} by prediction."


def _doubts(report: RunReport) -> Iterator[str]:
    """Whether the answer and the times are what they should be, where they are not."""
    facts = report.correctness
    if facts.checked and facts.ok is False:
        yield _sentence(f"The output is not correct: {facts.why or 'it differs from the reference'}")
    elif facts.checked and facts.lossy and facts.top1_agreement is not None:
        share = _percent(facts.top1_agreement)
        yield f"The method is lossy: the reference would choose {share} of the tokens too."
    if facts.rounded_weights:
        yield rounded_in_words(facts.rounded_weights)
    if report.fidelity.valid is False:
        why = "; ".join(report.fidelity.why) or "they could not be judged"
        yield _sentence(f"Its times are not valid: {why}")


def rounded_in_words(found: RoundedWeights) -> str:
    """What the answer loses by rounded weights, in one sentence."""
    parts = []
    if found.tokens:
        parts.append(f"changed {found.differing_tokens} of {_count(found.tokens, 'token')}")
    if found.max_abs_error is not None:
        what = "a logit" if found.tokens else "a number of its output"
        parts.append(f"moved {what} by up to {found.max_abs_error:.2g}")
    what = "Weights and activations" if found.activation_bits else "Weights"
    return f"{what} of {found.bits} bits {' and '.join(parts)}."


def _share(part_s: float, report: RunReport) -> str:
    return _percent(min(1.0, part_s / report.latency_s))


def _percent(fraction: float) -> str:
    return f"{fraction * 100:.0f} %"


def _count(number: int, noun: str) -> str:
    """`_count(1, "token")` → `"one token"`, `_count(2, "token")` → `"2 tokens"`."""
    return f"one {noun}" if number == 1 else f"{number} {noun}s"


def _listed(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."
