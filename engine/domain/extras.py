"""The libraries of the package's extras: where one is missing, a sentence says which extra brings it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from engine.domain.command_name import to_install
from engine.domain.errors import HostError

EXTRAS = {
    "torch": "torch",
    "transformers": "torch",
    "safetensors": "torch",
    "gguf": "torch",
    "jinja2": "results",
    "matplotlib": "results",
    "pandas": "results",
    "pyarrow": "results",
    "xarray": "results",
    "mininet": "emulator",
    "websockets": "node",
    "networkx": "drawings",
    "PIL": "pictures",
}
"""Library as it is imported → the extra in pyproject.toml that installs it."""


def need(library: str) -> None:
    """Check before long work that a library of an extra is there. Raises `HostError`."""
    if find_spec(library) is None:
        raise _missing(library)


@contextmanager
def naming_extras() -> Iterator[None]:
    """Run the block, also as a decorator; raises `HostError` where it imports a library that an extra brings
    and that is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        library = (error.name or "").partition(".")[0]
        if library not in EXTRAS:
            raise
        raise _missing(library) from error


def _missing(library: str) -> HostError:
    return HostError(f"this needs {library}, which is not installed: {to_install(EXTRAS[library])}.")
