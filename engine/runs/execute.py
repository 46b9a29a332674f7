"""A real run from spec to report: plan, build the network, run the devices, verify, fold."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from engine.domain.errors import SpecError
from engine.domain.events import PlanMade, ReportMade, RunState, StateChanged
from engine.domain.host_times import HostProfile
from engine.domain.network import Network
from engine.domain.report import Correctness, RunReport
from engine.domain.scenario import LiveCommand, Scenario
from engine.domain.spec import RunSpec
from engine.domain.trace import Mark, Span
from engine.models.inputs.text import GrowingText, can_decode, label_of
from engine.ops.sizes import COMPUTED_BITS
from engine.reports.verify import compare_with_reference
from engine.runs.conclude import RealResult, report_of
from engine.runs.failover import pairs_of
from engine.runs.host_kernels import known_kernels, measured_kernels, use_host_kernels
from engine.runs.lessons import learn, raised
from engine.runs.predict import Prepared, Watch, predict, prepare, simulate
from engine.runs.predictions import before_the_start
from engine.runs.readiness import READY_S
from engine.runs.service import recorded, without_record
from engine.runs.supervisor import Callbacks, Supervisor
from engine.runs.torch_import import TorchImport
from engine.strategies.registry import strategy
from engine.worlds.real.device_process import Assignment
from engine.worlds.real.dilation import CAUTIOUS, choose_dilation
from engine.worlds.real.probed import probed_profile

__all__ = ["execute", "predict"]

OpenNetwork = Callable[[RunSpec, float], Network]


def execute(
    spec: RunSpec,
    open_network: OpenNetwork,
    watch: Watch = lambda event: None,
    next_command: Callable[[], LiveCommand | None] = lambda: None,
    should_stop: Callable[[], bool] = lambda: False,
    before_start: Callable[[], None] = lambda: None,
    ready_s: float = READY_S,
) -> RunReport:
    """The real world's report: real weights, real sockets over the network that `open_network` makes.

    `open_network(spec, dilation)` gives the network to enter. `watch` sees every event as it happens;
    `next_command` gives live commands or None; `before_start` is called once all devices are ready, before
    the clock starts; `ready_s` is how long devices may take until then, and longer for many devices and
    weights (`readiness.py`). Raises `SpecError`, `PlanError`, `HostError`.
    """
    return _Execution(spec, watch, ready_s).run(open_network, next_command, should_stop, before_start)


class _Execution:
    """One real run, step by step; `timings` has the wall seconds of each."""

    def __init__(self, spec: RunSpec, watch: Watch, ready_s: float):
        self.spec = spec
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
        spec = self.spec = without_record(self.spec)
        if spec.model.weight_bits not in COMPUTED_BITS:
            raise SpecError(
                f"model {spec.model.name}: weights of {spec.model.weight_bits:g} bits are only predicted: "
                "take weight_bits 8 or 4, which runs compute with, or leave it out."
            )
        self._state("planning")
        prepared = prepare(spec)
        spec = self.spec = prepared.spec
        can_decode(spec.weights)  # makes the tokenizer now: the first token must not wait for it
        self.watch(PlanMade.of(prepared.plan))
        undisturbed = prepared._replace(spec=spec.model_copy(update={"scenario": Scenario()}))
        expected_trace, outcome = simulate(undisturbed, should_stop)
        before = before_the_start(prepared, expected_trace, outcome)
        importing = TorchImport()
        chosen = choose_dilation(spec, expected_trace, host=self._host_times(importing))
        dilation = raised(spec, chosen, expected_trace) if spec.dilation == "auto" else chosen
        pairs = pairs_of(spec, prepared.plan, expected_trace)
        self._lap("planning")

        self._state("building", f"dilation {dilation:g}")
        with open_network(spec, dilation) as network, tempfile.TemporaryDirectory() as results:
            importing.finish()
            use_host_kernels()
            self._lap("building")
            self._state("calibrating", f"links by {network.backend}")
            measured = network.measure()
            self._lap("calibrating")
            self._state("loading")
            known = () if spec.workload.is_open else prepared.requests
            assignment = Assignment(
                spec, prepared.plan, known, network, spec.dilation != "native", Path(results)
            )
            calls = Callbacks(self.watch, self._with_text, next_command, should_stop, before_start)
            supervisor = Supervisor(assignment, network, dilation, pairs, calls, ready_s=self.ready_s)
            result = supervisor.run()
            self._lap("running")
            self.timings["devices_ready"] = result.ready_s
            outputs = Path(results) / "outputs.safetensors"
            backend = network.backend
            if spec.workload.is_open:
                recorded_spec, requests = recorded(spec, result.requests, result.trace)
                prepared = Prepared(recorded_spec, requests, prepared.plan)
            correctness = self._verify(prepared, result, outputs)
        self._lap("verifying")
        report = report_of(prepared, result, dilation, measured, backend, correctness, self.timings, before)
        if dilation != chosen:
            report = _with_note(report, f"Runs like this one needed a dilation of more than {chosen:g} here.")
        self._learn(report, expected_trace)
        kind = result.outcome.kind
        self._state(kind if kind in ("finished", "cancelled") else "failed", result.outcome.sentence)
        self.watch(ReportMade.of(report))
        return report

    def _learn(self, report: RunReport, expected_trace: Sequence[Span | Mark]) -> None:
        """What the verdict recommends, for the next run like this one; also if a person gave the dilation."""
        needed = report.fidelity.enough_dilation
        if needed is None:
            return
        by_itself = self.spec.model_copy(update={"dilation": "auto"})
        host = probed_profile(use_host_kernels())
        learn(by_itself, choose_dilation(by_itself, expected_trace, host=host), needed, expected_trace)

    def _host_times(self, importing: TorchImport) -> HostProfile:
        """The times of this host by its table of kernels, where the dilation is to be chosen by them."""
        if self.spec.dilation != "auto" or self.spec.profile is not None:
            return CAUTIOUS
        table = known_kernels()
        if table is None:
            self._state("planning", "timing this machine's products, once, about a second")
            importing.finish()
            table = measured_kernels()
        return probed_profile(table)

    def _state(self, state: RunState, detail: str = "") -> None:
        self.watch(StateChanged(state=state, detail=detail))

    def _lap(self, step: str) -> None:
        now_s = time.monotonic()
        self.timings[step] = now_s - self.began_s
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
            return Correctness(why=f"not compared: the run ended as {result.outcome.kind.replace('_', ' ')}")
        if not prepared.requests:
            return Correctness(why="not compared: no request got a token")
        self._state("verifying", "against transformers on one device")
        lossy = strategy(self.spec.strategy).is_lossy(prepared.plan)
        kept = [request.index for request in prepared.requests]
        return compare_with_reference(prepared.spec, outputs, lossy, kept)


def _with_note(report: RunReport, note: str) -> RunReport:
    fidelity = report.fidelity.model_copy(update={"notes": (*report.fidelity.notes, note)})
    return report.model_copy(update={"fidelity": fidelity})
