"""Campaigns are tests marked `long("engine", …)`, with the folders and files whose changes concern them.

`--changed-since COMMIT` leaves out those that no change since that commit concerns.
"""

from __future__ import annotations

import subprocess
from pathlib import Path, PurePath

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--changed-since",
        metavar="COMMIT",
        help="of the campaigns only those that a change since then concerns",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    commit = config.getoption("--changed-since")
    if not commit:
        return
    changed = changed_since(commit, config.rootpath)
    left_out = [item for item in items if not is_concerned(item, changed, config.rootpath)]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]


def changed_since(commit: str, root: Path) -> list[PurePath]:
    """The files of the checkout that differ from those of `commit`, also if nobody has committed them."""
    commands = (("diff", "--name-only", commit, "--"), ("ls-files", "--others", "--exclude-standard"))
    said = [
        subprocess.run(("git", *command), cwd=root, check=True, capture_output=True, text=True).stdout
        for command in commands
    ]
    return [PurePath(line) for text in said for line in text.splitlines()]


def is_concerned(item: pytest.Item, changed: list[PurePath], root: Path) -> bool:
    """Whether a change of its own file, or of one that its markers name, concerns a test."""
    own = item.path.relative_to(root)
    concerns = [own, *(PurePath(name) for mark in item.iter_markers("long") for name in mark.args)]
    return any(path.is_relative_to(concern) for path in changed for concern in concerns)
