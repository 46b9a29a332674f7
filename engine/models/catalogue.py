"""Models by name: rows of `catalogue.toml`, and any local Hugging Face directory."""

from __future__ import annotations

import importlib.util
import tomllib
from functools import lru_cache
from pathlib import Path
from typing import Any

from engine.domain.command_name import COMMAND, to_install
from engine.domain.errors import SpecError
from engine.domain.model import ModelSpec
from engine.domain.spec import WeightsRef
from engine.domain.units import human
from engine.domain.values import Value
from engine.models.families.hf_config import spec_of_config
from engine.models.families.registry import FAMILIES
from engine.models.fetching import Packaged, fetched_directory, restored
from engine.models.weights.directory import SINGLE, read_spec
from engine.models.weights.headers import check_weights
from engine.ops.sizes import model_bytes, num_parameters
from engine.plugins.installed import Installed, Kind, check_free
from engine.plugins.packs import of_packs, tables

HERE = Path(__file__).parent
MODEL = Kind("model", "models")
OF_PACKS = {"name": str, "title": str, "source": str, "config": dict}
"""What a row of a pack has."""
SAME = (
    "family",
    "num_layers",
    "hidden_size",
    "num_heads",
    "num_kv_heads",
    "head_dim",
    "intermediate_size",
    "vocab_size",
)


class CatalogueRow(Value):
    """One model of the catalogue; `trained` says whether its weights are on this machine."""

    name: str
    title: str
    family: str
    num_layers: int
    hidden_size: int
    num_heads: int
    num_parameters: int
    weight_bytes: int
    trained: bool
    causal: bool
    source: str


@lru_cache(maxsize=1)
def _table() -> dict[str, dict[str, Any]]:
    return _own() | models_of_packs().rows


@lru_cache(maxsize=1)
def models_of_packs() -> Installed[dict[str, Any]]:
    """Rows of models with random weights: those with weights of their own are directories."""
    return of_packs(MODEL, _own(), _of_folder)


def _of_folder(folder: Path) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for index, row in enumerate(tables(folder, "models.toml", "model")):
        where = f"{folder / 'models.toml'}, model[{index}]"
        if {key: type(value) for key, value in row.items()} != OF_PACKS:
            raise SpecError(
                f"{where}: expected the texts name, title and source and the table config, got "
                f"{', '.join(row)}."
            )
        check_free(row["name"], found, MODEL, where)
        spec_of_config(row["name"], row["config"], where)
        found[row["name"]] = row
    return found


@lru_cache(maxsize=1)
def _own() -> dict[str, dict[str, Any]]:
    data = tomllib.loads((HERE / "catalogue.toml").read_text(encoding="utf-8"))
    table: dict[str, dict[str, Any]] = {}
    for row in data["model"]:
        if row["name"] in table:
            raise SpecError(f"catalogue.toml: {row['name']} is there twice.")
        if "null" in row:  # TOML has no null
            row["config"] |= dict.fromkeys(row.pop("null"))
        table[row["name"]] = row
    return table


def _directory(row: dict[str, Any]) -> Path | None:
    """The directory of a row's trained weights; None for a row without, or whose package is not here."""
    if "packaged" in row:
        directory = fetched_directory(row["name"])
        return directory if directory.is_dir() else None
    if "directory" not in row:
        return None
    if "package" not in row:
        return HERE / str(row["directory"])
    found = importlib.util.find_spec(row["package"])
    if found is None or not found.submodule_search_locations:
        return None
    return Path(found.submodule_search_locations[0]) / str(row["directory"])


def _spec(row: dict[str, Any]) -> ModelSpec:
    """The model of a row of the catalogue. Raises `SpecError` where a trained one is not on this machine."""
    if "config" in row:
        spec = spec_of_config(row["name"], row["config"], f"catalogue.toml, {row['name']}")
    else:
        directory = _directory(row)
        if directory is None and "packaged" in row:
            raise SpecError(
                f"{row['name']}: its weights are not on this machine: fetch them with {COMMAND} models fetch "
                f"{row['name']} ({human(packaged(row['name']).num_bytes, 'B')})."
            )
        if directory is None:
            raise SpecError(
                f"{row['name']}: the package {row['package']} is not installed: {to_install('torch')}."
            )
        spec = read_spec(directory, row["name"])
    return spec.model_copy(update={"source": row["source"]})


def _is_here(row: dict[str, Any]) -> bool:
    directory = _directory(row)
    return "config" in row or (directory is not None and (directory / SINGLE).is_file())


def packaged(name: str) -> Packaged:
    """The package that carries the model `name`. Raises `SpecError` for a model that is not fetched."""
    row = _table().get(name)
    if row is None or "packaged" not in row:
        raise SpecError(f"{name[:60]} is no model to fetch: expected {' or '.join(packaged_names())}.")
    return Packaged.model_validate(row["packaged"])


def packaged_names() -> tuple[str, ...]:
    """Names of the models that can be fetched, whether or not they are on this machine."""
    return tuple(name for name, row in _table().items() if "packaged" in row)


def names() -> tuple[str, ...]:
    """Names of the models on this machine."""
    return tuple(name for name, row in _table().items() if _is_here(row))


def rows() -> tuple[CatalogueRow, ...]:
    """The catalogue, without models that are not on this machine."""
    found = []
    for name in names():
        row = _table()[name]
        directory = _directory(row)
        spec = _spec(row)
        found.append(
            CatalogueRow(
                name=spec.name,
                title=row["title"],
                family=spec.family,
                num_layers=spec.num_layers,
                hidden_size=spec.hidden_size,
                num_heads=spec.num_heads,
                num_parameters=num_parameters(spec),
                weight_bytes=model_bytes(spec),
                trained=directory is not None,
                causal=spec.causal,
                source=spec.source,
            )
        )
    return tuple(found)


def smallest_models() -> tuple[str, ...]:
    """The smallest model of every family that the catalogue has, in the order of the families: for tests."""
    smallest: dict[str, CatalogueRow] = {}
    for row in sorted(rows(), key=lambda row: row.num_parameters):
        smallest.setdefault(row.family, row)
    return tuple(smallest[family.name].name for family in FAMILIES if family.name in smallest)


def _model_directory(path: Path) -> Path | None:
    """`path`, or the directory that a GGUF file is restored to; None if it is neither."""
    if path.suffix == ".gguf" and path.is_file():
        return restored(path)
    return path if path.is_dir() else None


def resolve(name_or_directory: str, weights: str | None = None) -> tuple[ModelSpec, WeightsRef]:
    """A catalogue name, a model directory or a GGUF file → its spec and where its weights are.

    `weights` is "random", a directory or GGUF file, or None: the model's own trained weights if it has
    some, else random. Raises `SpecError` for an unknown name, a bad directory, or weights of another shape.
    """
    row = _table().get(name_or_directory)
    if row is None:
        given = Path(name_or_directory).expanduser().resolve()
        own: Path | None = _model_directory(given)
        if own is None:
            known = ", ".join(_table())
            raise SpecError(
                f"model {name_or_directory}: is neither a directory, a GGUF file nor one of {known}."
            )
        spec = read_spec(own, given.stem if given.is_file() else given.name)
    else:
        spec, own = _spec(row), _directory(row)
    return with_weights(spec, weights, own)


def with_weights(
    spec: ModelSpec, weights: str | None, own: Path | None = None
) -> tuple[ModelSpec, WeightsRef]:
    """A model and where its weights are: `weights` as for `resolve`, `own` the folder of the model's own.
    Raises `SpecError` for weights of another shape.
    """
    if weights == "random" or (weights is None and own is None):
        return spec, WeightsRef(kind="random", directory=str(own or ""))
    asked = None if weights is None else Path(weights).expanduser().resolve()
    chosen = own if asked is None else _model_directory(asked) or asked
    assert chosen is not None
    stored = read_spec(chosen, spec.name)
    for field in SAME:
        if getattr(stored, field) != getattr(spec, field):
            raise SpecError(
                f"{chosen}: {field} is {getattr(stored, field)}, and {spec.name} has {getattr(spec, field)}: "
                "give weights of this model, or the directory as the model."
            )
    check_weights(chosen, stored)
    ref = WeightsRef(kind="directory", directory=str(chosen))
    return stored.model_copy(update={"source": spec.source}), ref
