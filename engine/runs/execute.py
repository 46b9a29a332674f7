"""A real run from spec to report: plan, build the network, run the devices, verify, fold."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from engine.domain.errors import SpecError
from engine.domain.events import AttemptBegun, PlanMade, ReportMade, RunState, StateChanged
from engine.domain.host_times import HostProfile
from engine.domain.network import Actual, LinkMeasurement, Network
from engine.domain.report import Correctness, RunReport
from engine.domain.scenario import LiveCommand, Scenario
from engine.domain.spec import RunSpec, without_record
from engine.domain.trace import Mark, Span
from engine.domain.units import human_s
from engine.models.inputs.text import GrowingText, can_decode, label_of
from engine.models.reference.teacher_forcing import prepare_reference
from engine.ops.sizes import COMPUTED_BITS
from engine.reports.verify import compare_with_reference
from engine.runs.active_run import Pairs
from engine.runs.attempts import Attempt, first_attempt, may_repeat, note_of
from engine.runs.children import StartDevice, fork_device
from engine.runs.conclude import RealResult, report_of
from engine.runs.failover import pairs_of
from engine.runs.holds import NO_LIMIT, Most, check_holds
from engine.runs.host_kernels import known_kernels, probing, use_host_kernels
from engine.runs.made_plan import MadePlan
from engine.runs.native import Simulated
from engine.runs.on_nodes import check_keeps_up, check_on_nodes, played_by_server
from engine.runs.predict import Prepared, Watch, predict, prepare, simulate
from engine.runs.predictions import before_the_start
from engine.runs.readiness import READY_S
from engine.runs.rehearsal import rehearsal_of
from engine.runs.service import recorded
from engine.runs.supervisor import Callbacks, Supervisor
from engine.runs.torch_import import TorchImport
from engine.strategies.registry import strategy
from engine.worlds.real.device_process import Assignment
from engine.worlds.real.dilation import CAUTIOUS, choose_dilation, end_s
from engine.worlds.real.probed import probed_profile

__all__ = ["execute", "predict"]

OpenNetwork = Callable[[RunSpec, float], Network]

LONGEST_WALL_S = 86_400.0
"""Wall seconds of a run whose dilation a person gave, by its prediction."""


def execute(
    spec: RunSpec,
    open_network: OpenNetwork,
    watch: Watch = lambda event: None,
    next_command: Callable[[], LiveCommand | None] = lambda: None,
    should_stop: Callable[[], bool] = lambda: False,
    before_start: Callable[[], None] = lambda: None,
    ready_s: float = READY_S,
    most: Most = NO_LIMIT,
    made: MadePlan | None = None,
    start: StartDevice = fork_device,
) -> RunReport:
    """The real world's report: real weights, real sockets over the network that `open_network` makes.

    `open_network(spec, dilation)` gives the network to enter. `watch` sees every event as it happens;
    `next_command` gives live commands or None; `before_start` is called once all devices are ready, before
    the clock starts; `ready_s` is how long devices may take until then, and longer for many devices and
    weights (`readiness.py`); `most` is what it may take of the machine; `made` as for `prepare`;
    `start` starts the process of a device. Raises
    `SpecError`, `PlanError`, `HostError`.
    """
    with tempfile.TemporaryDirectory() as folder:
        execution = _Execution(spec, watch, ready_s, most, made, Path(folder), start)
        return execution.run(open_network, next_command, should_stop, before_start)


class _Ready(NamedTuple):
    """A run that can be played: what its attempts have in common."""

    prepared: Prepared
    expected: Sequence[Span | Mark]
    before: Simulated | None
    importing: TorchImport
    dilation: float
    pairs: Pairs


class _Played(NamedTuple):
    """One attempt that has ended, and the measurements of its network."""

    result: RealResult
    links: list[LinkMeasurement]
    backend: str
    notes: tuple[str, ...]
    actual: Actual | None


class _Execution:
    """One real run, step by step; `timings` has the wall seconds of each, of all attempts together."""

    def __init__(
        self,
        spec: RunSpec,
        watch: Watch,
        ready_s: float,
        most: Most,
        made: MadePlan | None,
        folder: Path,
        start: StartDevice = fork_device,
    ):
        self.spec, self.most, self.made, self.folder, self.start = spec, most, made, folder, start
        self.ready_s = ready_s
        self.watch = watch
        self.timings: dict[str, float] = {}
        self.began_s = time.monotonic()
        self.texts: dict[int, GrowingText] = {}

    def run(
        self,
        open_network: OpenNetwork,
        next_command: Callable[[], LiveCommand | None],
        should_stop: Callable[[], bool],
        before_start: Callable[[], None],
    ) -> RunReport:
        ready = self._plan(should_stop)
        calls = Callbacks(self.watch, self._with_text, next_command, should_stop, before_start)
        attempt = first_attempt(ready.dilation, end_s(ready.expected))
        while True:
            with tempfile.TemporaryDirectory() as folder:
                played = self._play(ready, attempt, calls, open_network, Path(folder))
                result = played.result
                if result.needed_dilation is not None:
                    attempt = self._begin_again(attempt.after_early_end(result.needed_dilation), ready)
                    continue
                self._lap("dismantling")
                attempt = attempt._replace(dilation=result.dilation or attempt.dilation)
                prepared = ready.prepared
                if prepared.spec.workload.is_open:
                    spec, requests = recorded(prepared.spec, result.requests, result.trace)
                    prepared = prepared._replace(spec=spec, requests=requests)
                report = report_of(
                    prepared,
                    result,
                    attempt.dilation,
                    played.links,
                    played.backend,
                    ready.before,
                    played.actual,
                )
                self._lap("judging")
                after = attempt.after(report, result.changed_live)
                if after is None:
                    correctness = self._verify(prepared, result, Path(folder) / "outputs.safetensors")
                    break
            attempt = self._begin_again(after, ready)
        self._lap("verifying")
        report = report.model_copy(update={"correctness": correctness, "timings": self.timings})
        for note in (*played.notes, note_of(attempt, report, result.changed_live)):
            report = _with_note(report, note) if note else report
        kind = result.outcome.kind
        self._state(kind if kind in ("finished", "cancelled") else "failed", result.outcome.sentence)
        self.watch(ReportMade.of(report))
        return report

    def _plan(self, should_stop: Callable[[], bool]) -> _Ready:
        """What all attempts have in common: the plan, the prediction, the first dilation."""
        spec = without_record(self.spec)
        if spec.model.weight_bits not in COMPUTED_BITS:
            raise SpecError(
                f"model {spec.model.name}: weights of {spec.model.weight_bits:g} bits are only predicted: "
                "take weight_bits 8 or 4, which runs compute with, or leave it out."
            )
        if spec.on_nodes:
            check_on_nodes(spec, self.start is not fork_device)
        self._state("planning")
        importing = TorchImport()
        with self._host_times(importing) as host_times:
            prepared = prepare(spec, self.made)
            spec = self.spec = prepared.spec
            if not spec.on_nodes:
                check_holds(spec, prepared.plan, self.most)
            if spec.is_paced:  # others take all cores
                prepare_reference(spec, self.folder)
            can_decode(spec.weights)  # makes the tokenizer now: the first token must not wait for it
            self.watch(PlanMade.of(prepared.plan))
            undisturbed = prepared._replace(spec=spec.model_copy(update={"scenario": Scenario()}))
            expected_trace, outcome = simulate(undisturbed, should_stop)
            check_wall_time(spec, expected_trace)
            before = before_the_start(prepared, expected_trace, outcome)
            host = host_times()
            dilation = choose_dilation(spec, expected_trace, host=host)
            if played_by_server(spec):
                check_keeps_up(spec, expected_trace, host)
        pairs = pairs_of(spec, prepared.plan, expected_trace)
        self._lap("planning")
        return _Ready(prepared, expected_trace, before, importing, dilation, pairs)

    def _play(
        self,
        ready: _Ready,
        attempt: Attempt,
        calls: Callbacks,
        open_network: OpenNetwork,
        results: Path,
    ) -> _Played:
        """One attempt: build and measure its network, start its devices, let them run to the end."""
        spec, prepared = self.spec, ready.prepared
        self._state("building")
        with open_network(spec, attempt.dilation) as network:
            ready.importing.finish()
            use_host_kernels()
            self._lap("building")
            self._state("calibrating", f"links by {network.backend}")
            measured = network.measure()
            self._lap("calibrating")
            self._state("loading")
            known = () if spec.workload.is_open else prepared.requests
            assignment = Assignment(spec, prepared.plan, known, network, spec.is_paced, results)
            supervisor = Supervisor(
                assignment,
                network,
                attempt.dilation,
                ready.pairs,
                calls,
                ready_s=self.ready_s,
                rehearsal=rehearsal_of(prepared, ready.expected, attempt),
                expected=ready.expected if may_repeat(spec) and attempt.may_end_early else None,
                most_dilation=attempt.most,
                start=self.start,
            )
            result = supervisor.run()
            self._lap("running")
            self.timings["devices_ready"] = result.ready_s
            links = measured if result.links is None else result.links
            return _Played(result, links, network.backend, network.notes(), network.actual())

    def _begin_again(self, attempt: Attempt, ready: _Ready) -> Attempt:
        """Tell those who watch that what they have seen does not count."""
        self.texts.clear()
        self.watch(AttemptBegun(number=attempt.number, dilation=attempt.dilation, words=attempt.words))
        self.watch(PlanMade.of(ready.prepared.plan))
        return attempt

    @contextmanager
    def _host_times(self, importing: TorchImport) -> Iterator[Callable[[], HostProfile]]:
        """The times of this host by its table of kernels, where the dilation is to be chosen by them, or it
        plays devices beside boards. A table that is not there yet is measured beside what the block does.
        """
        is_needed = self.spec.dilation == "auto" or bool(played_by_server(self.spec))
        if not is_needed or self.spec.profile is not None:
            yield lambda: CAUTIOUS
        elif (table := known_kernels()) is not None:
            yield lambda: probed_profile(table)
        else:
            self._state("planning", "timing this machine's products, once, about a second")
            importing.finish()
            with probing() as measured:
                yield lambda: probed_profile(measured())

    def _state(self, state: RunState, detail: str = "") -> None:
        self.watch(StateChanged(state=state, detail=detail))

    def _lap(self, step: str) -> None:
        now_s = time.monotonic()
        self.timings[step] = self.timings.get(step, 0.0) + now_s - self.began_s
        self.began_s = now_s

    def _with_text(self, mark: Mark) -> Mark:
        """A token's mark with its text, which is known here, where the tokenizer is; a class's with its
        label.
        """
        if mark.name == "classified":
            classes = [one | {"label": self._label(one["index"])} for one in mark.facts["classes"]]
            return replace(mark, facts=mark.facts | {"classes": classes})
        if mark.name != "token_emitted":
            return mark
        return replace(mark, facts=mark.facts | {"text": self._text(mark.facts)})

    def _label(self, index: int) -> str:
        return label_of(self.spec.weights, index)

    def _text(self, facts: dict[str, Any]) -> str:
        """What this token adds to its request's text."""
        text = self.texts.setdefault(facts["request"], GrowingText(self.spec.model, self.spec.weights))
        return text.add(facts["token"])

    def _verify(self, prepared: Prepared, result: RealResult, outputs: Path) -> Correctness:
        if result.outcome.kind != "finished":
            return Correctness(why=f"not compared: the run {result.outcome.in_words}")
        if not prepared.requests:
            return Correctness(why="not compared: no request got a token")
        against = "against transformers on one device"
        self._state("verifying", against)
        lossy = strategy(self.spec.strategy).is_lossy(prepared.plan)
        kept = [request.index for request in prepared.requests]

        def said(words: str) -> None:
            self._state("verifying", f"{against}, {words}")

        return compare_with_reference(prepared.spec, outputs, lossy, kept, said)


def check_wall_time(spec: RunSpec, trace: Sequence[Span | Mark]) -> None:
    """Check that somebody may wait for a run that is predicted as `trace`, if a person gave its dilation.
    Raises `SpecError`.
    """
    virtual_s, dilation = end_s(trace), spec.dilation
    if isinstance(dilation, str) or virtual_s * dilation <= LONGEST_WALL_S:
        return
    raise SpecError(
        f"dilation: {dilation:g} times the {human_s(virtual_s)} that the run is predicted to take is "
        f"{human_s(virtual_s * dilation)} of wall time, expected at most {human_s(LONGEST_WALL_S)}: give "
        f"{LONGEST_WALL_S / virtual_s:.3g} or less, or auto.",
        [("dilation", f"at most {LONGEST_WALL_S / virtual_s:.3g} for this run")],
    )


def _with_note(report: RunReport, note: str) -> RunReport:
    fidelity = report.fidelity.model_copy(update={"notes": (*report.fidelity.notes, note)})
    return report.model_copy(update={"fidelity": fidelity})
