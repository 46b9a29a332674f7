"""Why a plan is as it is: for each device the constraint that binds it, found by trying.

Each device gets one unit more and one less, and its computing, its disk and its links are taken to need no
time, each in a prediction of its own with everything else as it is. What changes the figure most binds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from engine.advice.moves import Step, moved, step_of
from engine.advice.values import Assessment, DeviceReason, Move, Objective, Relief, Why
from engine.domain.by_hand import PlanByHand
from engine.domain.cluster import ClusterSpec
from engine.domain.errors import PlanError
from engine.domain.scenario import Scenario
from engine.domain.spec import RunSpec
from engine.domain.units import human, human_s
from engine.runs.predict import prepare
from engine.strategies.registry import strategy

AssessAll = Callable[[Sequence[RunSpec]], Sequence[Assessment]]
WORTH = 0.005
"""A smaller share of the figure is no difference."""
BINDS = 0.02
"""What takes a smaller share of the figure binds nothing."""
PARTNERS = 3
MANY_DEVICES = 6
"""With more devices, units are exchanged with one other device only."""
NO_TIME = 1e9
ENOUGH_MEMORY = 1e3
WHAT: dict[str, str] = {"compute": "its computing", "load": "its disk", "link": "the way over its links"}


class _Try(NamedTuple):
    """A run to predict, and what it shows: the relief of a device, or a move."""

    spec: RunSpec
    device: str
    what: str
    giver: str = ""


def explain(spec: RunSpec, assess_all: AssessAll) -> Why:
    """The binding constraint of every worker under the plan of `spec`.

    `assess_all` predicts runs, in any order of work. Raises `SpecError` and `PlanError` if there is no plan.
    """
    spec = spec.model_copy(update={"scenario": Scenario()})
    chosen = strategy(spec.strategy)
    if "plan" not in chosen.Params.model_fields:
        raise PlanError(f"{chosen.name} takes no plans made by hand, with which its own would be compared.")
    prepared = prepare(spec)
    plan = chosen.by_hand(spec.cluster, spec.model, prepared.plan)
    params = chosen.Params.parse(spec.params, "parameters")
    step = step_of(spec.model, params.units, dict(chosen.hand_steps(spec.model, params)))
    base = with_plan(spec, plan)
    workers = [spec.cluster.devices[rank].name for rank in spec.cluster.workers]
    like = _alike(spec.cluster, plan, workers)
    unlike = list(dict.fromkeys(like.values()))
    source = [spec.cluster.source] if spec.cluster.source not in workers else []
    tries = [*_reliefs(base, [*unlike, *source]), *_exchanges(base, plan, step, workers, unlike)]
    before, *found = assess_all([base, *(one.spec for one in tries)])
    objective = _dominant(before, spec.workload.new_tokens)
    outcome = list(zip(tries, found, strict=True))
    refused = [one for one, after in outcome if one.what == "move" and after.total_s is None]
    roomy = assess_all([_roomy(one) for one in refused])
    inquiry = _Inquiry(base, plan, step, objective, before, outcome, list(zip(refused, roomy, strict=True)))
    return Why(
        strategy=spec.strategy,
        objective=objective,
        figure_s=before.figure(objective),
        unit=step.words,
        devices=inquiry.reasons(like, source) if before.total_s is not None else (),
        sentence=before.reason,
    )


def with_plan(spec: RunSpec, plan: PlanByHand) -> RunSpec:
    return spec.model_copy(update={"params": {**spec.params, "plan": plan.to_json()}})


def _dominant(before: Assessment, new_tokens: int) -> Objective:
    """The figure that most of the answer's time goes into."""
    first_s, per_token_s = before.first_token_s, before.per_token_s
    decodes = first_s is not None and per_token_s is not None and (new_tokens - 1) * per_token_s > first_s
    return "per_token_s" if decodes else "first_token_s"


def _reliefs(base: RunSpec, workers: Sequence[str]) -> list[_Try]:
    """Each device without the time of its computing, of its disk, and of its links."""
    cluster = base.cluster
    computes: dict[str, Any] = {
        "flop_per_s": 1e6 * NO_TIME * 1e3,
        "memory_byte_per_s": 1e6 * NO_TIME,
        "op_overhead_s": 0.0,
        "dispatch_s": 0.0,
        "token_s": 0.0,
        "family_rates": (),
        "format_rates": (),
        "efficiencies": (),
        "half_rows": 0.0,
        "compute_model": "roofline",
    }
    reads = {"disk_byte_per_s": 1e6 * NO_TIME}
    tries = []
    for name in workers:
        for what, update in (("compute", computes), ("load", reads)):
            devices = [d.model_copy(update=update) if d.name == name else d for d in cluster.devices]
            tries.append(_Try(_on(base, devices=tuple(devices)), name, what))
        if len(cluster.devices) > 1:
            links = [_free(link) if name in (link.a, link.b) else link for link in cluster.links]
            tries.append(_Try(_on(base, links=tuple(links)), name, "link"))
    return tries


def _free(link: Any) -> Any:
    update = {"bit_per_s": NO_TIME * 1e6, "reverse_bit_per_s": None, "delay_s": 0.0, "reverse_delay_s": None}
    return link.model_copy(update=update)


def _on(spec: RunSpec, **fields: Any) -> RunSpec:
    """`spec` on a changed cluster. Routes depend on rates, so it is validated anew."""
    cluster = spec.cluster
    kept = {name: getattr(cluster, name) for name in ClusterSpec.model_fields}
    return spec.model_copy(update={"cluster": ClusterSpec(**{**kept, **fields})})


def _alike(cluster: ClusterSpec, plan: PlanByHand, workers: Sequence[str]) -> dict[str, str]:
    """Each worker → the first one that has the same share and differs from it by name alone."""
    shares = {share.device: share for share in plan.devices}
    first: dict[Any, str] = {}
    found = {}
    for name in workers:
        device = cluster.devices[cluster.rank(name)].model_copy(update={"name": "x"})
        links = tuple(
            link.model_copy(update={"a": "x"} if link.a == name else {"b": "x"})
            for link in cluster.links
            if name in (link.a, link.b)
        )
        share = shares[name].model_copy(update={"device": "x"}) if name in shares else None
        found[name] = first.setdefault((device, links, share, name == cluster.source), name)
    return found


def _exchanges(
    base: RunSpec, plan: PlanByHand, step: Step, workers: Sequence[str], unlike: Sequence[str]
) -> list[_Try]:
    """One unit from each device that has some to others: to some, or of many devices to the one behind it."""
    given = [share.device for share in plan.devices if share.device in workers]
    idle = [name for name in unlike if name not in given]
    partners = PARTNERS if len(unlike) <= MANY_DEVICES else 1
    tries = []
    for giver in (name for name in given if name in unlike):
        at = given.index(giver)
        others = [*given[at + 1 :], *given[:at]]
        others.sort(key=lambda name: name not in unlike)
        for taker in (*others[:partners], *(idle if partners > 1 or giver == given[0] else ())):
            changed = moved(plan, step, giver, taker, base.cluster.source)
            if changed is not None:
                tries.append(_Try(with_plan(base, changed), taker, "move", giver))
    return tries


def _roomy(one: _Try) -> RunSpec:
    """The same with much more memory on the taker."""
    devices = [
        d.model_copy(update={"memory_bytes": ENOUGH_MEMORY * d.memory_bytes}) if d.name == one.device else d
        for d in one.spec.cluster.devices
    ]
    return _on(one.spec, devices=tuple(devices))


class _Inquiry(NamedTuple):
    """All that was tried, and what came out: `roomy` has the refused moves again with memory enough."""

    base: RunSpec
    plan: PlanByHand
    step: Step
    objective: Objective
    before: Assessment
    outcome: list[tuple[_Try, Assessment]]
    roomy: list[tuple[_Try, Assessment]]

    def reasons(self, like: Mapping[str, str], source: Sequence[str]) -> tuple[DeviceReason, ...]:
        """The reasons for the shares of all workers, and of a source that is none: devices that differ by
        name alone have one reason.
        """
        known = {name: self.reason(name) for name in (*dict.fromkeys(like.values()), *source)}
        alike = {name: known[first].model_copy(update={"device": name}) for name, first in like.items()}
        return (*alike.values(), *(known[name] for name in source))

    def reason(self, name: str) -> DeviceReason:
        share = next((one for one in self.plan.devices if one.device == name), None)
        rank = self.base.cluster.rank(name)
        reliefs = self._reliefs_of(name)
        takes, gives = self._moves(name, taking=True), self._moves(name, taking=False)
        take, give = _best(takes), _best(gives)
        held = self.before.peak_bytes[rank]
        free = self.base.cluster.devices[rank].usable_bytes - held
        idle = share is None or name not in self.before.devices
        needs = self._needs(name, rank)
        full = needs is not None and (take is None or take.after_s is None)
        first = max(reliefs, key=lambda one: one.saved_s, default=None)
        if needs is not None and full and needs[1] > WORTH * self._before_s:
            binding, sentence = "memory", self._of_memory(needs, free)
        elif idle:
            binding, sentence = "idle", self._of_idle(take, needs, free)
        elif first is not None and first.saved_s >= BINDS * self._before_s:
            binding, sentence = first.what, self._of_relief(name, first, take, give)
        else:
            binding, sentence = (
                "none",
                self._of_none(),
            )
        return DeviceReason(
            device=name,
            binding=binding,
            sentence=sentence,
            reliefs=tuple(reliefs),
            take=take,
            give=give,
            free_bytes=max(0.0, free),
            needs_bytes=needs[0] if needs else None,
        )

    @property
    def _before_s(self) -> float:
        return self.before.figure(self.objective) or 0.0

    def _reliefs_of(self, name: str) -> list[Relief]:
        return [
            Relief(what=one.what, saved_s=max(0.0, self._before_s - (after.figure(self.objective) or 0.0)))
            for one, after in self.outcome
            if one.device == name and one.what != "move" and after.total_s is not None
        ]

    def _moves(self, name: str, taking: bool) -> list[Move]:
        return [
            Move(
                giver=one.giver,
                taker=one.device,
                after_s=after.figure(self.objective),
                saved_s=None
                if after.total_s is None
                else self._before_s - (after.figure(self.objective) or 0),
                refusal="" if after.total_s is not None else after.reason,
            )
            for one, after in self.outcome
            if one.what == "move" and name == (one.device if taking else one.giver)
        ]

    def _needs(self, name: str, rank: int) -> tuple[float, float] | None:
        """What only the memory of `name` keeps it from taking: bytes of the unit, and the seconds that the
        best of them would save.
        """
        found = [
            (after.peak_bytes[rank] - self.before.peak_bytes[rank], self._before_s - figure)
            for one, after in self.roomy
            if one.device == name and (figure := after.figure(self.objective)) is not None
        ]
        return max(found, key=lambda one: one[1], default=None)

    def _of_memory(self, needs: tuple[float, float], free: float) -> str:
        return (
            f"Memory full: {self.step.words} more needs {human(needs[0], 'B')}, {human(max(0.0, free), 'B')} "
            f"are free; with it {self._thing} would take {self._amount(needs[1])} less."
        )

    def _of_idle(self, take: Move | None, needs: tuple[float, float] | None, free: float) -> str:
        if take is None or take.saved_s is None:
            if needs is not None:
                return (
                    f"Idle: {self.step.words} needs {human(needs[0], 'B')}, and "
                    f"{human(max(0.0, free), 'B')} are free."
                )
            return f"Idle: no plan gives it {self.step.words}" + (f": {take.refusal}" if take else ".")
        if take.saved_s > WORTH * self._before_s:
            return (
                f"Idle, though {self.step.words} of {take.giver} here would save "
                f"{self._amount(take.saved_s)} of {self._thing}."
            )
        cost = self._amount(-take.saved_s) if take.saved_s < -WORTH * self._before_s else "nothing"
        return f"Idle: {self.step.words} of {take.giver} here would cost {cost}" + (
            f" per {self._per}." if cost != "nothing" else " and save nothing."
        )

    def _of_none(self) -> str:
        return (
            f"Not a bottleneck: {self._thing} takes as long even if its computing, its disk and its links "
            "need no time."
        )

    def _of_relief(self, name: str, first: Relief, take: Move | None, give: Move | None) -> str:
        share = first.saved_s / self._before_s
        what = WHAT[first.what]
        if first.what == "link":
            links = [one.name for one in self.base.cluster.links if name in (one.a, one.b)]
            what = f"the link {links[0]}" if len(links) == 1 else f"the links of {name}"
        head = {"compute": "Compute", "load": "Disk", "link": "Link"}[first.what]
        text = f"{head}: {what} takes {self._amount(first.saved_s)} of {self._thing} ({share:.0%})"
        return f"{text}{self._tail(take, give)}."

    def _tail(self, take: Move | None, give: Move | None) -> str:
        """What one unit to another device and from another would do, where there is such a plan."""
        verbs = ("save", "cost") if self.step.words.startswith("all") else ("saves", "costs")
        parts = []
        for move in (give, take):
            if move is None or move.saved_s is None:
                continue
            way = f"to {move.taker}" if move is give else f"from {move.giver}"
            verb = verbs[move.saved_s < 0]
            much = self._amount(abs(move.saved_s))
            parts.append(f"{way} {verb} {much if abs(move.saved_s) > WORTH * self._before_s else 'nothing'}")
        return f"; {self.step.words} {', '.join(parts)}" if parts else ""

    @property
    def _per(self) -> str:
        return "token" if self.objective == "per_token_s" else "first token"

    @property
    def _thing(self) -> str:
        if not self.base.workload.new_tokens:
            return "the result"
        return "a token" if self.objective == "per_token_s" else "the first token"

    def _amount(self, seconds: float) -> str:
        return human_s(seconds)


def _best(moves: Sequence[Move]) -> Move | None:
    """The one that saves most; a refused one only if all are."""
    return max(moves, key=lambda one: (one.saved_s is not None, one.saved_s or 0.0), default=None)
