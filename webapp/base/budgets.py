"""How large a request may be: limits that are checked by arithmetic before anything is built from it.

They keep one request from taking the service from everybody else. The command line has none of them: there a
person spends the time of their own machine.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from django.db.models import JSONField, QuerySet, Sum, TextField
from django.db.models.functions import Cast, Length

from engine.domain.cluster import ClusterSpec
from engine.domain.errors import SpecError
from engine.domain.model import ModelSpec
from engine.domain.scenario import Scenario, SetLoss
from engine.domain.spec import RunSpec
from engine.domain.values import Value
from engine.domain.workload import Workload
from engine.models import catalogue
from topologies.files import MAX_DEVICES, MAX_LINKS

MAX_DEVICES_ADVISED = 80
MAX_LOSS_FRAC = 0.9
"""The largest loss: beyond it TCP repeats a packet for hours; 1 is a link that is down."""
LEAST_RATE_PER_S = 1e-3
"""The least rate of devices, links and requests: with less, times become larger than any that is computed
with.
"""
MAX_CHANGES = 2000
MAX_PROMPT_CHARS = 200_000
MAX_TRACED_REQUESTS = 50_000
"""Most requests of a trace. Each has about 80 characters at most, and a run is asked for in one body of at
most `DATA_UPLOAD_MAX_MEMORY_SIZE`.
"""
MAX_PREDICTED_STEPS = 2_000_000
MAX_AWAITED_PASSES = 300_000
"""Most layers × tokens of a prediction for which a person waits: it has half a minute, and the simulated
world takes about 75 µs for a token's pass through a layer, whichever device computes it.
"""
MAX_EMULATED_STEPS = 500_000
"""The most steps of an emulated run, layers × tokens × requests × devices: each is about one operation and
one event.
"""

MAX_SMALL_DEVICES = 32
MAX_SMALL_STEPS = 50_000
"""Most steps of a question for which a planning process is kept free: about a second."""

MAX_POINTS = 2000
"""Most points × worlds of an experiment on the server."""
MAX_EMULATED_POINTS = 500
MAX_DEVICES_OF_ALL_POINTS = 100_000
MAX_VIEWS = 100
"""Most figures, tables and claims of an experiment: each is worked out of all rows whenever
somebody looks.
"""
MAX_VALUES = 2000
"""Most published values and assumptions of an experiment."""
MAX_CONDITIONS = 100
MAX_CONDITION_CHARS = 500
MAX_SETTINGS = 200
"""Most paths that one point sets."""
MAX_EXPERIMENTS_UNDER_WAY = 5
"""Most experiments of one person under way at once."""
MAX_EXPERIMENTS = 500
MAX_CLUSTERS = 500
"""Most stored clusters of one person."""
MAX_CLUSTERS_CHARS = 5_000_000
MAX_EXPERIMENTS_CHARS = 20_000_000
"""All documents of one person together, with those of the versions that were started: lists read them all."""
MAX_STUDY_BYTES = 50_000_000
"""Of a study's archive, which is read in memory."""
MAX_STUDY_RESULTS_CHARS = 50_000_000
"""All results of imported studies of one person together."""

MAX_EXPERIMENT_CHARS = 1_000_000
MAX_DRAWING_CHARS = 1_000_000

MAX_ADVISED_STEPS = 10_000
"""Most layers × devices × requests at once to advise on: about the operations of one forward pass."""
MAX_SMALL_ADVISED_STEPS = 1_000

MAX_NOTES_CHARS = 20_000
MAX_TAGS = 20
MAX_TAG_CHARS = 50
BIDI_CONTROLS = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""Embeddings, overrides and isolates (Unicode Standard Annex 9), without the marks that some texts need."""
MAX_TITLE_CHARS = 200
MAX_DESCRIPTION_CHARS = 10_000


def check_cluster(cluster: ClusterSpec, path: str) -> None:
    """Check the size of a cluster, which `path` names in the request. Raises `SpecError`."""
    _at_most(len(cluster.devices), MAX_DEVICES, "devices", f"{path}.devices")
    _at_most(len(cluster.links), MAX_LINKS, "links", f"{path}.links")
    for index, link in enumerate(cluster.links):
        where = f"{path}.links[{index}]"
        if max(link.loss(True), link.loss(False)) > MAX_LOSS_FRAC:
            expected = f"at most {MAX_LOSS_FRAC}; remove a link that carries nothing"
            raise SpecError(f"{where}.loss_frac: expected {expected}.", [(f"{where}.loss_frac", expected)])
        _check_rates(link, where)
    for index, device in enumerate(cluster.devices):
        _check_rates(device, f"{path}.devices[{index}]")
    _at_most(len(cluster.title), MAX_TITLE_CHARS, "characters", f"{path}.title")
    check_line(cluster.title, f"{path}.title")
    _at_most(len(cluster.description), MAX_DESCRIPTION_CHARS, "characters", f"{path}.description")


def _check_rates(part: Value, path: str) -> None:
    for name, value in part:
        if name.endswith("_per_s") and value is not None and value < LEAST_RATE_PER_S:
            expected = f"at least {LEAST_RATE_PER_S:g}"
            raise SpecError(f"{path}.{name}: {value:g}, expected {expected}.", [(f"{path}.{name}", expected)])


def check_stored(number: int, limit: int, what: str, person: str) -> None:
    """Check that one more may be stored for `person`; raises `SpecError`."""
    if number >= limit:
        raise SpecError(f"{person} has {number} {what}, and the limit is {limit}: delete some first.")


def check_results(number: int, where: str) -> None:
    """Check that a study has no more results than an experiment here can have; raises `SpecError`."""
    _at_most(number, MAX_POINTS, "results of one experiment", where)


def check_documents(stored: Iterable[QuerySet[Any]], adds: Sequence[Any], limit: int, person: str) -> None:
    """Check that the documents `adds` may be stored for `person` beside what the rows `stored` have in
    columns of JSON. Raises `SpecError`.
    """
    number = sum(len(json.dumps(document)) for document in adds)
    for rows in stored:
        fields = [field.name for field in rows.model._meta.concrete_fields if isinstance(field, JSONField)]
        texts = {f"{name}_chars": Sum(Length(Cast(name, TextField()))) for name in fields}
        number += sum(chars or 0 for chars in rows.order_by().aggregate(**texts).values())
    if number > limit:
        raise SpecError(
            f"{person} would have {number} characters stored, and the limit is {limit}: delete some first."
        )


def check_labels(name: str, notes: str, tags: Sequence[str]) -> None:
    """What people write about a run, which lists show. Raises `SpecError`."""
    check_line(name, "name")
    _at_most(len(notes), MAX_NOTES_CHARS, "characters", "notes")
    _at_most(len(tags), MAX_TAGS, "tags", "tags")
    for index, tag in enumerate(tags):
        _at_most(len(tag), MAX_TAG_CHARS, "characters", f"tags[{index}]")
        check_line(tag, f"tags[{index}]")


def check_line(text: str, path: str) -> None:
    """Check that a name is one line of plain text; raises `SpecError`.

    A terminal obeys ESC, and after a bidirectional override a page shows other text backwards.
    """
    for character in text:
        if unicodedata.category(character) in ("Cc", "Zl", "Zp") or character in BIDI_CONTROLS:
            complaint = f"has the character U+{ord(character):04X}, expected one line of plain text"
            raise SpecError(f"{path}: {complaint}.", [(path, complaint)])


def check_workload(workload: Workload) -> None:
    """Check the sizes of a workload before a prompt is tokenised; raises `SpecError`."""
    _at_most(len(workload.prompt or ""), MAX_PROMPT_CHARS, "characters", "workload.prompt")
    check_trace(len(workload.trace), "workload.trace")
    _check_rates(workload, "workload")


def check_trace(requests: int, where: str) -> None:
    """Check that a run may have so many requests of a trace; raises `SpecError`."""
    if requests > MAX_TRACED_REQUESTS:
        limit = f"{MAX_TRACED_REQUESTS:,}"
        raise SpecError(
            f"{where}: has {requests:,} requests, and a run here has at most {limit}: take a part of them, "
            f"as with requests={MAX_TRACED_REQUESTS} or until_s, or run it on the command line.",
            [("trace", f"at most {limit}")],
        )


def check_scenario(scenario: Scenario) -> None:
    """Check that a scenario has not too many changes, nor impossible rates; raises `SpecError`."""
    _at_most(len(scenario.changes), MAX_CHANGES, "changes", "scenario.changes")
    for index, change in enumerate(scenario.changes):
        _check_rates(change, f"scenario.changes[{index}]")
        if isinstance(change, SetLoss):
            _check_loss(change.loss_frac, f"scenario.changes[{index}].loss_frac")


def _check_loss(loss_frac: float, path: str) -> None:
    if MAX_LOSS_FRAC < loss_frac < 1:
        expected = f"at most {MAX_LOSS_FRAC}, or 1 for a link that is down"
        raise SpecError(f"{path}: {loss_frac:g} of all packets, expected {expected}.", [(path, expected)])


def check_prediction(spec: RunSpec) -> None:
    """Check that a run is not too large to be predicted here; raises `SpecError`."""
    _check_steps(spec, MAX_PREDICTED_STEPS, "predicted")


def check_awaited_prediction(spec: RunSpec) -> None:
    """Check that a run can be predicted while a person waits; raises `SpecError`."""
    tokens, layers = passes_of(spec.workload), max(1, spec.model.num_layers)
    if tokens * layers > MAX_AWAITED_PASSES:
        raise SpecError(
            f"The run is too large to be predicted while you wait: {tokens:,} tokens of "
            f"{spec.workload.requests:,} requests × {layers} layers are {tokens * layers:,} passes through a "
            f"layer, and the limit is {MAX_AWAITED_PASSES:,}: ask for fewer requests or tokens, or predict "
            "it on the command line.",
            [("workload", f"{tokens * layers:,} tokens × layers, at most {MAX_AWAITED_PASSES:,}")],
        )


def check_advice(spec: RunSpec) -> None:
    """Check that all strategies can be assessed for a run while a person waits; raises `SpecError`."""
    _at_most(len(spec.cluster.devices), MAX_DEVICES_ADVISED, "devices to advise on", "cluster.devices")
    _at_most(
        steps_of_a_pass(spec),
        MAX_ADVISED_STEPS,
        "layers × devices × requests at once to advise on",
        "workload",
    )


def is_large_advice(spec: RunSpec) -> bool:
    """Whether assessing all strategies takes more than a few seconds, or may: as `is_large_run`."""
    return steps_of_a_pass(spec) > MAX_SMALL_ADVISED_STEPS or is_large_run(spec)


def check_emulation(spec: RunSpec) -> None:
    """Check that a run is not too large to be emulated; raises `SpecError`."""
    _check_steps(spec, MAX_EMULATED_STEPS, "emulated")


def steps_of_a_pass(spec: RunSpec) -> int:
    """The steps of one forward pass: layers × devices × requests at once."""
    return spec.model.num_layers * len(spec.cluster.devices) * spec.workload.together


def steps_of(cluster: ClusterSpec, model: ModelSpec, workload: Workload) -> int:
    """Layers × forward passes × devices, an upper estimate of the operations of a run."""
    return max(1, model.num_layers) * passes_of(workload) * len(cluster.devices)


def passes_of(workload: Workload) -> int:
    """The forward passes of all requests: one for each token that is asked for, and one where none is."""
    if workload.trace:
        return sum(row.new_tokens for row in workload.trace)
    return workload.requests * max(1, workload.new_tokens)


def is_large(devices: int, steps: int = 0) -> bool:
    """Whether to plan for so many devices, or to play so many steps, takes more than a moment."""
    return devices > MAX_SMALL_DEVICES or steps > MAX_SMALL_STEPS


def is_large_run(spec: RunSpec) -> bool:
    """Whether a run takes long to plan, also for the prompt of a model that somebody added: its tokenizer may
    take any time.
    """
    return is_large(len(spec.cluster.devices), steps_of(spec.cluster, spec.model, spec.workload)) or bool(
        spec.workload.prompt and spec.model.name not in catalogue.names()
    )


class ExperimentSize(NamedTuple):
    """The size of an experiment. `devices` are those of the largest cluster, `settings` the paths that a
    point sets at most.
    """

    points: int
    devices: int
    settings: int
    views: int
    values: int


def check_experiment(size: ExperimentSize) -> None:
    """Check that an experiment is not too large for the server; raises `SpecError`."""
    _at_most(size.points, MAX_POINTS, "points", "experiment")
    _at_most(
        size.points * size.devices, MAX_DEVICES_OF_ALL_POINTS, "devices in all points together", "experiment"
    )
    _at_most(size.settings, MAX_SETTINGS, "paths that a point sets", "experiment")
    _at_most(size.views, MAX_VIEWS, "figures, tables and claims", "experiment")
    _at_most(size.values, MAX_VALUES, "published values and assumptions", "experiment")


def check_conditions(conditions: Sequence[str]) -> None:
    """Check the number of conditions, each of which is evaluated at every point; raises `SpecError`."""
    _at_most(len(conditions), MAX_CONDITIONS, "conditions", "where")
    for index, condition in enumerate(conditions):
        _at_most(len(condition), MAX_CONDITION_CHARS, "characters", f"where[{index}]")


def check_emulated_points(points: int) -> None:
    """Check that no more points are to be emulated than one experiment may; raises `SpecError`."""
    _at_most(points, MAX_EMULATED_POINTS, "points to emulate", "digests")


def check_experiment_text(text: str, path: str) -> None:
    """Check the size of an experiment before it is parsed; raises `SpecError`."""
    _at_most(len(text), MAX_EXPERIMENT_CHARS, "characters", path)


def check_written_out(text: str) -> None:
    """Check the size of an experiment with its recorded files in it; raises `SpecError`."""
    if len(text) > MAX_EXPERIMENT_CHARS:
        raise SpecError(
            f"The experiment has {len(text):,} characters with its recorded files written out, and the limit "
            f"is {MAX_EXPERIMENT_CHARS:,}: name a part of them, as day.csv,requests=1000 or "
            "bus.up@LINK,until_s=60.",
            [("files", f"at most {MAX_EXPERIMENT_CHARS:,} characters")],
        )


def check_drawing_text(text: str) -> None:
    """Check the size of a drawing before it is parsed; raises `SpecError`."""
    _at_most(len(text), MAX_DRAWING_CHARS, "characters", "text")


def _check_steps(spec: RunSpec, limit: int, what: str) -> None:
    steps = steps_of(spec.cluster, spec.model, spec.workload)
    if steps <= limit:
        return
    sentence = (
        f"The run is too large to be {what} here: {passes_of(spec.workload):,} tokens of "
        f"{spec.workload.requests:,} requests × {spec.model.num_layers} layers × "
        f"{len(spec.cluster.devices)} devices are {steps:,} steps, and the limit is {limit:,}: ask for fewer "
        "requests or tokens."
    )
    raise SpecError(sentence, [("workload", f"{steps:,} steps, at most {limit:,}")])


def _at_most(number: int, limit: int, what: str, path: str) -> None:
    if number > limit:
        raise SpecError(
            f"{path}: {number:,} {what}, and the limit is {limit:,}.", [(path, f"at most {limit:,}")]
        )
