"""The hooks before a commit are the checks of `./loom test`."""

from __future__ import annotations

import shlex

import yaml

from webapp.ops.check import checks
from webapp.ops.places import ROOT

CONFIGURATION = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
HOOKS = {hook["name"]: hook for repo in CONFIGURATION["repos"] for hook in repo["hooks"]}
ONLY_BEFORE_A_COMMIT = {"documents"}
"""tests/architecture checks these in `./loom test`."""


def test_every_check_is_a_hook_and_every_hook_a_check() -> None:
    assert set(HOOKS) == {check.name for check in checks({})} | ONLY_BEFORE_A_COMMIT


def test_a_hook_runs_what_the_check_runs() -> None:
    for check in checks({}):
        words = shlex.split(HOOKS[check.name]["entry"])

        if check.command[0] == "npm":
            assert [word for word in words if word not in ("--prefix", "webapp/frontend")] == list(
                check.command
            )
        else:
            assert words[1:] == list(check.command)[1:]


def test_hooks_come_from_this_project_alone() -> None:
    assert {repo["repo"] for repo in CONFIGURATION["repos"]} == {"local"}
    assert not [hook for hook in HOOKS.values() if hook["language"] != "system" or hook["pass_filenames"]]
