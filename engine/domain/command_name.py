"""How a person calls EdgeLoom's command here: `./loom` in a checkout, `edgeloom` where it is installed."""

from __future__ import annotations

IS_CHECKOUT = __name__.startswith("engine.")
"""In the wheel this module is below `edgeloom`. Sessions of emulations see no file `loom`."""

COMMAND = "./loom" if IS_CHECKOUT else "edgeloom"


def to_install(extra: str) -> str:
    """How a person installs what an extra of the package (pyproject.toml) needs: words for a remedy."""
    return f"run {COMMAND} setup" if IS_CHECKOUT else f"run pip install 'edgeloom[{extra}]'"


def as_called_here(text: str) -> str:
    """`text` of the manual, in which commands have the name that they have in this installation."""
    return text.replace("./loom ", f"{COMMAND} ")
