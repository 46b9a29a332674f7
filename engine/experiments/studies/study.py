"""Study: what an archive of experiments holds, as the file `study.json` in it says.

The archive has that file, RO-Crate's metadata, and for each experiment a folder as `loom experiment report`
writes it, with its runs besides; clusters by name; and the source of outside methods, if it was wished.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from engine.domain.presented import ExperimentName
from engine.domain.spec import MethodOrigin
from engine.domain.values import Count, Value
from engine.domain.world import World
from engine.models.weights.manifest import StoredFile

MANIFEST = "study.json"
CRATE = "ro-crate-metadata.json"
POINTS, RUNS, DESIGN = "points.json", "runs.jsonl", "experiment.toml"

PART = r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}"
NAME = re.compile(rf"{PART}(/{PART}){{0,7}}")
"""What a file in a study may be called: no path out of it, nothing hidden, nothing for a shell to read."""

FileName = Annotated[str, StringConstraints(pattern=rf"^{NAME.pattern}$")]
Text = Annotated[str, StringConstraints(max_length=500)]


class StudiedExperiment(Value):
    """One experiment: its digest is that of its exports, `results` counts points in worlds with a result."""

    name: ExperimentName
    title: Text = ""
    digest: str
    seeds: tuple[Count, ...]
    worlds: tuple[World, ...]
    points: Count
    results: Count

    @property
    def folder(self) -> str:
        return f"experiments/{self.name}"


class StudiedMethod(Value):
    """A method; `origin` says where it is from, unless it comes with EdgeLoom. `source` is the folder, or the
    file, that has its code, "" if the study has not.
    """

    name: str
    title: Text = ""
    paper: Text = ""
    origin: MethodOrigin | None = None
    source: Annotated[str, StringConstraints(pattern=rf"^({NAME.pattern})?$")] = ""


class StudiedModel(Value):
    """A model: its weights are drawn from the seed (`random`), or those whose files have this digest."""

    name: str
    parameters: Count
    weights: Literal["random", "directory"]
    digest: str = ""
    bytes: Count = 0


class Study(Value):
    """A study. `clusters` has the files of those that its experiments name, `files` every file but
    `study.json`. `environment` is of the machine that packed it; of which
    code a result is, the result says.
    """

    format: Literal["edgeloom-study"] = "edgeloom-study"
    version: Literal[1] = 1
    packed_on: Annotated[str, StringConstraints(pattern=r"^\d{4}-\d\d-\d\d$")]
    licence: Text = ""
    environment: dict[str, Text]
    experiments: tuple[StudiedExperiment, ...] = Field(min_length=1)
    methods: tuple[StudiedMethod, ...]
    models: tuple[StudiedModel, ...]
    clusters: dict[str, FileName]
    files: dict[FileName, StoredFile]
