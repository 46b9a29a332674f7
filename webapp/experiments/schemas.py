"""The bodies of the experiments API's requests and answers."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from ninja import Schema
from pydantic import Field

from engine.advice.planners import PlannerGain
from engine.domain.experiment import Experiment
from engine.domain.presented import Figure, Table
from engine.domain.quantity import Coordinates
from engine.domain.values import Whole
from engine.domain.world import World
from engine.experiments.presentation.figure_values import FigureData
from engine.experiments.results.best import Best
from engine.experiments.results.claims import Verdict
from engine.experiments.results.pivot import TableData
from engine.experiments.results.published import PublishedRow
from engine.experiments.results.sameness import Note
from engine.experiments.studies.repeat import Verdict as StudyVerdict
from webapp.clusters.validation import Problem
from webapp.experiments.progress import WorldProgress

ExperimentState = Literal["new", "running", "paused", "cancelled", "finished"]
"""What an experiment is doing: `finished` once no point waits, also if some have failed."""

RowState = Literal["waiting", "running", "done", "failed", "problem"]


class ExperimentIn(Schema):
    """An experiment that a person sends: exactly one of `experiment` (its fields) and `toml` (an experiment
    file).
    """

    experiment: dict[str, Any] | None = None
    toml: str | None = None
    files: dict[str, str] = Field(
        default_factory=dict,
        description="The texts of recorded files (rates, requests, prompts) that the file `toml` names.",
    )
    name: str | None = Field(default=None, max_length=100, description="Else the experiment's own.")


class ExperimentEdit(ExperimentIn):
    """A change of an experiment; without `experiment` and `toml` only the name changes."""

    version: Whole = Field(
        description="The version that was edited; 409 if it is not the stored one any more."
    )


class ExperimentRow(Schema):
    id: int
    name: str
    title: str
    owner: str
    may_change: bool = Field(description="Whether the person who asks is its owner or an administrator.")
    created_at: datetime
    updated_at: datetime
    version: int
    state: ExperimentState
    total: int = Field(description="Rows: points × worlds, of the version that was started last.")
    done: int
    failed: int


class StudyOrigin(Schema):
    """The study from which an experiment was taken; `environment` is of the machine that packed it."""

    file: str
    packed_on: str
    licence: str
    environment: dict[str, str]
    imported_at: datetime
    version: int = Field(description="The experiment's version of which its results are.")


class ExperimentOut(ExperimentRow):
    experiment: Experiment | None = Field(description="Null if it cannot be read: `unreadable` says why.")
    unreadable: str
    started_version: int | None = Field(description="The version that rows and figures are of.")
    progress: dict[World, WorldProgress]
    stale: int = Field(description="Rows that another version of the code or another calibration has made.")
    code_version: str
    study: StudyOrigin | None = Field(description="Where it was imported from, with results.")


class PointOut(Schema):
    index: int
    coordinates: Coordinates
    seed: int
    digest: str
    problem: str
    emulate_s: float | None = Field(description="Wall seconds of its emulation, once it is predicted.")


class CheckOut(Schema):
    """What is wrong with an experiment, and how much it is. Never a refusal: it lists."""

    num_points: int
    limit: int = Field(description="The largest number of points × worlds here.")
    sentence: str = Field(default="", description="Why it has no points; else empty.")
    problems: list[Problem] = Field(description="The same by field.")
    points: list[PointOut]
    predict_s: float | None
    emulate_s: float | None = Field(description="For all points; null until some are predicted.")


class RowOut(Schema):
    """A point in one world. `index` and `world` identify it: a later row replaces an earlier one."""

    index: int
    world: World
    state: RowState
    coordinates: Coordinates
    seed: int
    digest: str
    outcome: str | None
    reason: str = Field(description="Why there is no result, how the run ended, or what changed nothing.")
    alone: str = Field(description="The only device that computed; empty if several did.")
    metrics: dict[str, float]
    run_id: int | None
    wall_s: float | None
    code_version: str
    calibration: str
    stale: str = Field(description='Why it is stale, as words to follow "made by"; empty if it is not.')


class RowsOut(Schema):
    rows: list[RowOut]
    cursor: float = Field(description="Give it as `since` of the next request.")
    state: ExperimentState
    progress: dict[World, WorldProgress]


class PreviewOut(CheckOut):
    rows: list[RowOut]
    figures: list[FigureData]
    best: list[Best] = Field(description="Of the first figure's series, at each of its places.")
    notes: list[Note] = Field(description="What is one plan by several names, once all is predicted.")
    waiting: int = Field(description="Points that are being predicted: ask again.")


class StudyOut(Schema):
    """The experiments of a study, stored here as designs, each with the study's results beside it."""

    experiments: list[ExperimentOut]
    told: str = Field(description="How many of their points are the runs of the study; empty: not known.")


class StudyValue(Schema):
    outcome: str
    metrics: dict[str, float] = Field(description="Those of the experiment's figures and tables, and times.")


class StudyLine(Schema):
    """A point of a study in one world, beside the same run here."""

    coordinates: Coordinates
    seed: int
    world: World
    theirs: StudyValue
    ours: StudyValue | None = Field(description="Null until the same run is computed here.")
    verdict: StudyVerdict
    metric: str = Field(description="The one that decided, where the two are not the same; else empty.")
    study: str = Field(description="Its value, or its interval, in the study.")
    repeated: str = Field(description="The same here.")


class StudyResultsOut(Schema):
    told: list[str] = Field(description="What the comparison comes to; empty until something is computed.")
    lines: list[StudyLine]
    may_repeat: bool = Field(description="Whether to repeat it would compute what nobody has asked for.")


class AnalysisOut(Schema):
    figures: list[FigureData]
    tables: list[TableData]
    best: list[Best] = Field(description="Of the first figure's series, at each of its places.")
    notes: list[Note] = Field(description="What is one plan by several names, and what changes nothing.")
    claims: list[Verdict]
    published: list[PublishedRow]
    problems: list[Problem] = Field(description="Figures and tables that cannot be drawn.")


class PlannersOut(Schema):
    """What planner=best would give the methods that followed their papers' rules, by prediction."""

    told: str = Field(description="In one sentence; empty where it gives nothing.")
    gains: list[PlannerGain]


class ShippedOut(Schema):
    """An experiment that comes with EdgeLoom; `experiment` is what to send to store a copy."""

    name: str
    title: str
    description: str
    paper: str
    num_points: int
    experiment: Experiment


class FigureIn(Schema):
    figure: Figure


class TableIn(Schema):
    table: Table


class BaseIn(Schema):
    base: dict[str, Any]


class Emulate(Schema):
    """The points to emulate: exactly one of `digests` (of rows) and `choose`."""

    digests: list[str] = Field(default_factory=list, max_length=2000)
    choose: Literal["all"] | None = None
    world: Literal["emulated", "nodes"] = Field(
        default="emulated", description="nodes: on the boards that the devices of each point are bound to."
    )


class Retry(Schema):
    scope: Literal["failed", "stale"] = "failed"


class Retried(Schema):
    count: int
