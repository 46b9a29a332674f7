"""RunReport: the result of a run. It is written once; pages, tables and comparisons read it."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, SerializeAsAny, ValidationInfo, field_validator

from engine.domain.links import link_words
from engine.domain.method_report import MethodReport
from engine.domain.plan import Plan
from engine.domain.scenario import Scenario
from engine.domain.spec import RunSpec
from engine.domain.values import Value
from engine.domain.world import World


class DeviceReport(Value):
    """What one device did: how long it computed and waited, and of `memory_bytes` the most that it used.
    `flops` are those of its operations, `energy_j` by the rates of its preset.
    """

    name: str
    busy_s: float
    wait_s: float
    peak_memory_bytes: int
    memory_bytes: float
    flops: int
    energy_j: float = 0.0


class LinkReport(Value):
    """One direction of a link; `rate_bit_per_s` is asked for, `achieved_bit_per_s` measured.

    `first_bytes` and `first_busy_s` are the parts of `bytes` and `busy_s` before the first tokens, which the
    prompts take; None in reports of older versions.
    """

    a: str
    b: str
    parallel: int = 1
    direction: Literal["forward", "backward"]
    bytes: int
    payload_bytes: int
    busy_s: float
    rate_bit_per_s: float
    achieved_bit_per_s: float | None = None
    energy_j: float = 0.0
    first_bytes: int | None = None
    first_busy_s: float | None = None

    @property
    def words(self) -> str:
        """`a → b` in its direction; of the second link between these nodes `a → b (2)`."""
        return link_words(self.a, self.b, self.parallel, self.direction)


class LayerReport(Value):
    """First start and last end of a layer's computation on one device, in the first forward pass."""

    layer: int
    device: str
    start_s: float
    end_s: float


class ClassReport(Value):
    """One of a classifier's most likely classes."""

    index: int
    probability: float
    label: str = ""


class RequestReport(Value):
    """One request: `token_s` are the times of its tokens since its arrival; `classes` are a classifier's
    answer, the most likely first. `queue_s` is its time in the queue, `answered_s` that until its answer was
    complete, both since its arrival; None if it did not come to that. `cancelled_s`: when it was cancelled,
    since its arrival.
    """

    index: int
    arrival_s: float
    ttft_s: float
    token_s: tuple[float, ...]
    output_tokens: tuple[int, ...]
    text: str = ""
    classes: tuple[ClassReport, ...] = ()
    queue_s: float | None = None
    answered_s: float | None = None
    cancelled_s: float | None = Field(default=None, exclude_if=lambda cancelled: cancelled is None)


class Percentiles(Value):
    """The distribution of one figure over requests."""

    mean: float
    p50: float
    p95: float
    p99: float


class LoadReport(Value):
    """What users see whose requests wait in a queue.

    `within_objectives` of the answered requests kept the objectives of the workload, all if it has none;
    goodput counts only those. `mean_queue` is the mean number of waiting requests over time.
    """

    arrived: int
    answered: int
    answered_per_s: float
    within_objectives: int
    goodput_per_s: float
    queue_s: Percentiles | None
    first_token_s: Percentiles | None
    per_token_s: Percentiles | None
    answer_s: Percentiles | None
    longest_queue: int
    mean_queue: float


class Attribution(Value):
    """The end-to-end time by kind, along the critical path; the parts add up to `latency_s`."""

    compute_s: float = 0.0
    link_s: float = 0.0
    load_s: float = 0.0
    staging_s: float = 0.0
    wait_s: float = 0.0
    idle_s: float = 0.0
    """Seconds in which no request was there."""


class RoundedWeights(Value):
    """What the answer loses by weights that are rounded to `bits` bits: the run beside `transformers` with
    the weights as they are, after the same tokens, of which that would have chosen `differing_tokens`
    otherwise.

    `max_abs_error`: of logits, or of hidden states where no token is chosen; None where only ids reach the
    source.
    """

    bits: int
    tokens: int
    differing_tokens: int
    activation_bits: int = Field(
        default=0,
        description="Those of what products take in; 0: the dtype's.",
        exclude_if=lambda bits: not bits,
    )
    max_abs_error: float | None = None


class Correctness(Value):
    """How a run's outputs compare with the single-device `transformers` reference. `checked` is False for a
    prediction.

    A lossy run is neither right nor wrong: `ok` is None, unless its numbers are not finite, and the figures
    say how far it is off. They compare its logits with the reference's logits after the same tokens, those
    that the run emitted (teacher forcing): `kl_mean` is the mean of KL(reference ‖ run), in nats, and
    `top1_agreement` the fraction of tokens that the reference would have chosen too.

    Where only token ids reach the source, tokens are all that can be compared: there are no errors then.

    In bfloat16, and where a token differs, the errors of a lossless run are those after the same tokens.
    `transformers` then computes in numbers of twice the width, too: `rounding_error` is the largest
    difference that this makes, `error_over_rounding` the run's difference from the wide numbers over the
    library's (in a typical row), and `flipped_tokens` counts the tokens that the library would not have
    chosen. They are no error where its margin is within the rounding error.

    `prompt_identical`: whether the prompt's ids are those of the library's own tokenizer; None where ids were
    given, or random weights have no tokenizer.
    """

    checked: bool = False
    ok: bool | None = None
    lossy: bool = False
    prompt_identical: bool | None = None
    token_identical: bool | None = None
    max_abs_error: float | None = None
    max_rel_error: float | None = None
    kl_mean: float | None = None
    top1_agreement: float | None = None
    rounding_error: float | None = None
    error_over_rounding: float | None = None
    flipped_tokens: int | None = None
    rounded_weights: RoundedWeights | None = Field(default=None, exclude_if=lambda found: found is None)
    why: str = ""


class NativePart(Value):
    """One part of a native run's time, predicted for its host and measured."""

    name: Literal["compute", "runtime", "link", "disk", "wait"]
    predicted_s: float
    measured_s: float


class Fidelity(Value):
    """How close the emulation came to what was asked for. `valid` is None for a prediction.

    compute_error_*   lateness of paced operations, relative to their time, in batches: this host's own delay
    model_error_*     durations of operations against the device model's: Σ |took - expected| / Σ expected,
                      and what 95 % of them do not exceed
    compared_frac     the part of the operations that the prediction has too, so that they could be compared
    latency_error     latency / predicted latency - 1
    latency_limit     the largest |latency_error| of a valid run; None where the latency is not judged
    enough_dilation   the dilation with which a run that is not valid may be; None if no dilation mends it
    native            the parts of a run at native speed, predicted for its host beside measured
    why, notes        what makes the run invalid; what was not judged, or more mildly, and for what reason
    """

    valid: bool | None = None
    compute_error_mean: float | None = None
    compute_error_p95: float | None = None
    model_error_mean: float | None = None
    model_error_p95: float | None = None
    compared_frac: float | None = None
    latency_error: float | None = None
    latency_limit: float | None = None
    link_error_max: float | None = None
    late_frac: float | None = None
    enough_dilation: float | None = None
    backend: str = ""
    native: tuple[NativePart, ...] = ()
    why: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


class PairReport(Value):
    """The network from one board to another: as the links between them are drawn, and as a measurement at
    the begin of the run found it. A delay is one-way; the measured one is half of the least round trip. What
    is used is what messages took until somebody changed a link: where the network gives more than is drawn,
    they may have been slowed down to that.
    """

    sender: str
    receiver: str
    drawn_bit_per_s: float
    measured_bit_per_s: float
    drawn_delay_s: float
    measured_delay_s: float
    drawn_loss_frac: float
    measured_loss_frac: float
    used_bit_per_s: float | None = Field(default=None, description="Null in reports of older versions.")
    used_delay_s: float | None = None


OutcomeKind = Literal[
    "finished", "out_of_memory", "out_of_time", "peer_lost", "deadlock", "cancelled", "failed"
]
_ENDINGS: dict[OutcomeKind, str] = {
    "finished": "finished",
    "out_of_memory": "ran out of memory",
    "out_of_time": "ran out of time",
    "peer_lost": "stopped because a device failed",
    "deadlock": "ended in a deadlock",
    "cancelled": "was stopped",
    "failed": "failed",
}


class Outcome(Value):
    """How the run ended; `sentence` explains it."""

    kind: OutcomeKind = "finished"
    sentence: str = ""
    device: str = ""
    time_s: float = 0.0

    @property
    def in_words(self) -> str:
        """What a run with this outcome did, to follow "the run"."""
        return _ENDINGS[self.kind]


class Recovery(Value):
    """A device that failed or joined, and how the run continued (times as in the guide to failures).

    `replanned` is False where the strategy continued by itself or nothing had to change; `rebuild_s` is None
    if no token came after it, or the next recovery began before one.
    """

    device: str
    how: Literal["killed", "frozen", "unreachable", "joined"]
    at_s: float
    detect_s: float
    replanned: bool
    replan_s: float
    reload_s: float
    rebuild_s: float | None


class Prediction(Value):
    """The predicted figures of a run; `Predictions` says what it knew of the changes."""

    latency_s: float
    ttft_s: float
    tpot_s: float
    tokens_per_s: float
    peak_memory_bytes: dict[str, int]
    attribution: Attribution = Attribution()


class FromHereOn(Value):
    """A prediction made while a run goes on: its tokens so far, and the rest as the newest change leaves it.

    at_s       virtual time at which it was made
    changes    how many changes of the cluster had been made by then, all of which it knows
    left_s     from then to the end of the run
    latency_s  of the whole run: what it had taken by then, and what is left
    """

    at_s: float
    changes: int
    left_s: float
    latency_s: float


class Predictions(Value):
    """What was predicted of a run, three times. The names stand on every page and in every export.

    before_the_start        it knows the changes of the spec's scenario, and none that people make later
    from_here_on            made after each change that was not known before the start; one for several that
                            came while the one before was computed
    with_all_changes_known  made after the end, with every change and the choices that the run made; of a run
                            on boards also with their calibrated rows and the links that were measured, but
                            none where a board was lost
    """

    before_the_start: Prediction | None = None
    from_here_on: tuple[FromHereOn, ...] = ()
    with_all_changes_known: Prediction | None = None


class Uncertainty(Value):
    """How far real boards may be from the prediction of a run: `basis` says what the rates of the boards are,
    and each pair has the predicted figure if all of them are as fast, and as slow, as that allows; none where
    the run is too long to be predicted thrice.
    """

    basis: str
    latency_s: tuple[float, float] | None = None
    ttft_s: tuple[float, float] | None = None
    tpot_s: tuple[float, float] | None = None


class RunReport(Value):
    """The result of a run: what was asked (`spec`, with the changes of its `scenario`), what was decided, and
    what was measured. All times are virtual seconds.

    `world` says where it ran: predicted, calculated, emulated or native; one virtual second took `dilation`
    wall seconds. `latency_s` is from the first arrival to the last token, `ttft_s` the mean of all requests'
    first tokens, `tpot_s` that of the times between tokens. `output_tokens` and `text` are the first
    request's. `recoveries`: failed and new devices. `versions` are those of EdgeLoom and of the libraries
    that computed.
    """

    spec: RunSpec
    plan: Plan | None
    world: World
    dilation: float
    outcome: Outcome = Outcome()
    latency_s: float = 0.0
    ttft_s: float = 0.0
    tpot_s: float = 0.0
    tokens_per_s: float = 0.0
    energy_j: float = 0.0
    edp_j_s: float = 0.0
    output_tokens: tuple[int, ...] = ()
    text: str = ""
    requests: tuple[RequestReport, ...] = ()
    load: LoadReport | None = Field(default=None, description="Of a workload whose requests may wait.")
    devices: tuple[DeviceReport, ...] = ()
    links: tuple[LinkReport, ...] = ()
    pairs: tuple[PairReport, ...] = Field(
        default=(),
        description="Of a run on boards: the network between every two, drawn beside measured.",
        exclude_if=lambda pairs: not pairs,
    )
    layers: tuple[LayerReport, ...] = ()
    attribution: Attribution = Attribution()
    correctness: Correctness = Correctness()
    fidelity: Fidelity = Fidelity()
    predictions: Predictions = Predictions()
    uncertainty: Uncertainty | None = Field(
        default=None, description="Of its prediction, where rates of boards were not measured here."
    )
    recoveries: tuple[Recovery, ...] = ()
    method: SerializeAsAny[MethodReport] | None = Field(
        default=None, description="What the method did, in its own terms."
    )
    figures: dict[str, float] = Field(
        default_factory=dict, description="Those of installed packages that needed the trace, by name."
    )
    without_replan: Outcome | None = Field(
        default=None, description="How the run would have ended without new plans, in the simulated world."
    )
    rule: str = Field(
        default="",
        description="Of the plan, by which another order of devices, or better ones, can be slower.",
        exclude_if=lambda rule: not rule,
    )
    with_best_planner_s: float | None = Field(
        default=None,
        description="Predicted latency with planner=best, where the method followed its paper's rule, which "
        "is predicted to take longer.",
    )
    scenario: Scenario = Scenario()
    versions: dict[str, str] = Field(default_factory=dict)
    timings: dict[str, Any] = Field(default_factory=dict, description="Wall seconds of set-up steps.")
    seed: int = 0

    @field_validator("method", mode="before")
    @classmethod
    def _method_of_kind(cls, value: Any, info: ValidationInfo) -> Any:
        return MethodReport.of_kind(value, info)
