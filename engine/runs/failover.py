"""Losses in a real run: who is believed lost, and how the others go on.

A process that ended is lost. A device that somebody suspects (silent, unreachable) is ended first, so that it
is lost for all. If the source is suspected it is asked: if it answers, who suspected it is cut off. All
devices learn of a loss at once, and a strategy may cope by itself. Where a program did not, the parent halts
all, plans again for what is left to do (`recovery.py`), connects, and starts all together.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

from engine.domain.errors import EdgeLoomError
from engine.domain.plan import Plan
from engine.domain.report import Outcome
from engine.domain.scenario import Scenario
from engine.domain.spec import RunSpec
from engine.domain.trace import Mark, Span
from engine.domain.workload import Request
from engine.runs.children import Child
from engine.runs.predict import Prepared, gave_up, outcome_of, simulate
from engine.runs.replan import replan, unfinished
from engine.strategies.registry import strategy
from engine.worlds.common.device import takes_part
from engine.worlds.real.watchdog import ASK_AFTER_S, LEAST_SILENCE_S

if TYPE_CHECKING:
    from engine.runs.supervisor import Launch

RESTART_LEAD_S = 0.02
NO_ANSWER_S = 2.0
FEW_TOKENS = 2
"""As many as it takes to see who talks to whom: the prompt's, and one fed back."""


class Failover:
    """One run's losses. `pairs` are the (sender, receiver) ranks that the current plan needs."""

    def __init__(self, launch: Launch, pairs: frozenset[tuple[int, int]]):
        self.launch = launch
        self.pairs = pairs
        self.epoch = 0
        self.reporters: set[int] = set()
        self.asked_s = 0.0
        self.joining: set[int] = set()
        self.reason = ""

    def suspect(self, reporter: int, rank: int) -> None:
        """`reporter` hears nothing of `rank`: one of them is ended, once it is clear which."""
        if rank == self.launch.cluster.source_rank:
            self.reporters.add(reporter)
            self._ask_source()
        else:
            self.launch.give_up(rank)

    def _ask_source(self) -> None:
        source = self.launch.children.get(self.launch.cluster.source_rank)
        if source is not None and not self.asked_s:
            self.asked_s = time.monotonic()
            source.tell(type="ping")

    def watch(self, children: Iterable[Child]) -> None:
        """Of devices that are to do something, end those that do not even answer: they are frozen."""
        now_s = time.monotonic()
        for child in children if self.launch.start_s else ():
            if child.asked_s <= child.heard_s < now_s - ASK_AFTER_S:
                child.asked_s = now_s
                child.tell(type="ping")
            elif child.asked_s > child.heard_s and now_s - child.asked_s > NO_ANSWER_S:
                self.launch.give_up(child.rank)

    def answered(self, child: Child) -> None:
        """If it is the source that was suspected: who cannot hear it is the one that is cut off."""
        if child.rank != self.launch.cluster.source_rank:
            return
        self.asked_s = 0.0
        for reporter in self.reporters & self.launch.children.keys():
            self.launch.give_up(reporter)
        self.reporters.clear()

    def _watch_source(self) -> None:
        """A source that has said nothing for long is asked; one that does not answer is given up."""
        launch, now_s = self.launch, time.monotonic()
        source = launch.cluster.source_rank
        silence_s = max(LEAST_SILENCE_S, launch.spec.silence_s * launch.dilation)
        if source not in launch.children or launch.children[source].state != "running":
            return
        if now_s - launch.children[source].heard_s > silence_s:
            self._ask_source()
        if self.asked_s and now_s - self.asked_s > LEAST_SILENCE_S:
            launch.give_up(source)

    def lost(self, child: Child) -> None:
        """A process has ended: say so, and tell the others."""
        launch = self.launch
        fault = self._fault(child.name)
        how = {"device_lost": "killed", "device_frozen": "frozen", "link_down": "unreachable"}
        facts = {
            "how": how[fault.name] if fault else "killed",
            "since_s": fault.time_s if fault else launch.now_s,
        }
        if fault is None:
            launch.happened(Mark(launch.now_s, "device_lost", child.name))
        launch.happened(Mark(launch.now_s, "loss_detected", child.name, facts))
        launch.conditions.lose(child.rank)
        self.joining.discard(child.rank)
        talks = any(child.rank in pair for pair in self.pairs)  # also who holds no weights may be waited for
        needed = talks or takes_part(launch.cluster, launch.plan, child.rank)
        sentence = f"{child.name} was lost at {launch.now_s:.3f} s"
        if child.rank == launch.cluster.source_rank:
            self._end(f"{sentence}, and it is the source: nobody else has the prompt.", child.name)
        elif needed and (launch.spec.failover == "stop" or not launch.start_s):
            self._end(f"{sentence} and has a part in the plan.", child.name)
        elif needed:
            self.reason = f"{sentence}."
            launch.tell_all(type="lost", rank=child.rank)

    def join(self, rank: int) -> None:
        """A device comes, with empty memory: a new process, which the next plan may use."""
        self._fork_empty(rank)
        self.joining.add(rank)

    def _fork_empty(self, rank: int) -> None:
        launch = self.launch
        holdings = tuple(holding for holding in launch.plan.holdings if holding.device != rank)
        empty = launch.plan.model_copy(update={"holdings": holdings})
        launch.fork(rank, launch.assignment._replace(plan=empty))

    def act(self) -> None:
        """Plan again if a program is stuck, or a device has joined."""
        launch = self.launch
        self._watch_source()
        states = {rank: child.state for rank, child in launch.children.items()}
        stuck = "stuck" in states.values()
        come = self.joining and all(states.get(rank) == "listening" for rank in self.joining)
        if launch.outcome is not None or not (stuck or come):
            return
        if come:
            names = ", ".join(launch.cluster.devices[rank].name for rank in sorted(self.joining))
            self.reason = f"{names} joined at {launch.now_s:.3f} s."
            for rank in self.joining:
                launch.conditions.join(rank)
            self.joining.clear()
        self._go_on()

    def _go_on(self) -> None:
        """Halt, plan, connect, start. A further loss meanwhile begins it anew."""
        launch = self.launch
        launch.tell_all(type="halt")
        while not launch.collect("halted"):
            if launch.outcome is not None:
                return
        requests = unfinished(launch.assignment.requests, launch.trace)
        if not requests:  # the last token was out already
            for child in launch.children.values():
                child.state = "finished"
            return
        try:
            plan = replan(launch.spec, launch.plan, launch.conditions.cluster, requests)
            self.pairs = pairs_of(launch.spec, plan, _first_tokens(launch.spec, plan, requests))
        except EdgeLoomError as error:
            launch.outcome = outcome_of(gave_up(Exception(self.reason), error))
            return
        launch.plan, self.epoch = plan, self.epoch + 1
        told = plan.model_dump(mode="json")
        launch.happened(Mark(launch.now_s, "replanned", facts={"reason": self.reason, "plan": told}))
        idle = launch.needed() - launch.children.keys()  # devices that no plan has used so far
        for rank in idle:
            self._fork_empty(rank)
        if not launch.collect("listening", idle):
            if launch.outcome is None:
                self._go_on()
            return
        launch.tell_connections(
            "resume",
            self.pairs,
            plan=told,
            epoch=self.epoch,
            lost=sorted(launch.conditions.lost),
            requests=[request.model_dump(mode="json") for request in requests],
        )
        if launch.collect("ready"):
            launch.begin(time.monotonic() + RESTART_LEAD_S)
        elif launch.outcome is None:
            self._go_on()

    def _fault(self, name: str) -> Mark | None:
        """What was done to the device and is not over yet: it is the cause."""
        launch = self.launch
        links = {link.name for link in launch.cluster.links if name in (link.a, link.b)}
        found = None
        for item in launch.trace:
            if not isinstance(item, Mark):
                continue
            done_to_it = item.device == name and item.name in ("device_lost", "device_frozen")
            cut_off = item.name == "link_down" and item.facts.get("link") in links
            if done_to_it or cut_off:
                found = item
            elif item.device == name and item.name in ("device_joined", "loss_detected"):
                found = None
        return found

    def _end(self, sentence: str, device: str) -> None:
        launch = self.launch
        launch.outcome = Outcome(kind="peer_lost", sentence=sentence, device=device, time_s=launch.now_s)


def pairs_of(spec: RunSpec, plan: Plan, trace: list[Span | Mark]) -> frozenset[tuple[int, int]]:
    """Who sends to whom under `plan`: what its prediction shows, and what the strategy says besides."""
    ranks = {device.name: rank for rank, device in enumerate(spec.cluster.devices)}
    talking = {
        (ranks[item.device], ranks[item.peer])
        for item in trace
        if isinstance(item, Span) and item.kind == "send"
    }
    return frozenset(talking) | strategy(spec.strategy).partners(spec.cluster, plan)


def _first_tokens(spec: RunSpec, plan: Plan, requests: tuple[Request, ...]) -> list[Span | Mark]:
    """What the simulated world shows of `plan` over the first tokens, undisturbed."""
    few = min(spec.workload.new_tokens, max(request.emitted for request in requests) + FEW_TOKENS)
    workload = spec.workload.model_copy(update={"new_tokens": few})
    short = spec.model_copy(update={"workload": workload, "scenario": Scenario()})
    return simulate(Prepared(short, requests, plan))[0]
