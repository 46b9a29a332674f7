"""The command `edgeloom` in copies of a process that has imported the libraries and the methods already,
which is most of what a start takes. What looks for installed packages is imported by each copy anew if there
may be one more than in this process, else it is imported already, too: each finds them as a start does.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import pkgutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any, NoReturn

from engine.domain.parent import end_with
from tests.devtools.rooms import ROOT

SERVE = "import sys; from tests.support.warm_start import serve; sys.exit(serve(*map(int, sys.argv[1:])))"
LIBRARIES = ("jinja2", "numpy", "pydantic", "rich.console", "rich.progress", "rich.table", "yaml")
ROOMS = ("engine.domain", "engine.ops", "engine.plugins", "engine.program", "engine.strategies")
LEFT_OUT = ("engine.ops.torch_kernels", "engine.strategies.registry")
"""They import torch, and look for installed packages."""
COMMANDS = ("edgeloom.own_packages", "emulator.cli.main", "webapp.operations.commands", "webapp.ops.up")
"""What the command imports itself."""


class Warm:
    """The process and the way to ask it."""

    def __init__(self, environment: dict[str, str], whole: bool) -> None:
        self._asking, theirs = socket.socketpair()
        line = (sys.executable, "-P", "-c", SERVE, str(theirs.fileno()), str(int(whole)))
        path = {"PYTHONPATH": str(ROOT)}
        with theirs:
            self._process = subprocess.Popen(
                line, env=environment | path, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()]
            )
        self._answers = self._asking.makefile("r", encoding="utf-8")

    def status_of(self, **asked: Any) -> int:
        self._asking.sendall(json.dumps(asked).encode() + b"\n")
        answer = self._answers.readline()
        assert answer, "the process that copies itself broke off"
        return int(answer)

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
        self._answers.close()
        self._asking.close()


_running: dict[bool, Warm] = {}


def run(words: tuple[str, ...], folder: Path, path: str, environment: dict[str, str], said: Path) -> int:
    """The status of the command with `words`; it writes into the files `out` and `err` of `said`."""
    whole = not path
    if whole not in _running:
        _running[whole] = Warm(environment, whole)
        atexit.register(_end)
    try:
        return _running[whole].status_of(
            words=words, folder=str(folder), path=path, environment=environment, said=str(said)
        )
    except BaseException:  # also a test that took too long: its copy dies with the process
        _end()
        raise


def _end() -> None:
    while _running:
        _running.popitem()[1].end()


def serve(asked_by: int, whole: int) -> int:
    """Answer every line of the socket with the status of a copy; in a copy, be the command."""
    _import_methods()
    for name in COMMANDS if whole else ():
        importlib.import_module(name)
    gc.freeze()
    with socket.socket(fileno=asked_by) as asking, asking.makefile("rw", encoding="utf-8") as lines:
        while line := lines.readline():
            here, copy = os.getpid(), os.fork()
            if not copy:
                end_with(here)
                break
            _, status = os.waitpid(copy, 0)
            lines.write(f"{os.waitstatus_to_exitcode(status)}\n")
            lines.flush()
        else:
            return 0
        os.close(asking.detach())
    _be_the_command(**json.loads(line))


def _import_methods() -> None:
    def look(**_: str) -> NoReturn:
        raise RuntimeError("it looks for installed packages: leave it out")

    from engine.plugins import installed

    before, installed.entry_points = installed.entry_points, look
    for name in (*LIBRARIES, *ROOMS):
        module = importlib.import_module(name)
        if name in ROOMS:
            for found in _modules_in(module):
                importlib.import_module(found)
    installed.entry_points = before


def _modules_in(package: Any) -> list[str]:
    found = []
    for _, name, is_package in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        if name not in LEFT_OUT:
            found += [name, *(_modules_in(importlib.import_module(name)) if is_package else ())]
    return found


def _be_the_command(
    words: list[str], folder: str, path: str, environment: dict[str, str], said: str
) -> NoReturn:
    for number, name in ((1, "out"), (2, "err")):
        file = os.open(Path(said) / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(file, number)
        os.close(file)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.path[:0] = [part for part in path.split(os.pathsep) if part]
    sys.argv = ["-c", *words]
    from edgeloom.command_line import main

    try:
        status = main()
    except SystemExit as ending:  # of argparse
        status = ending.code if isinstance(ending.code, int) else int(ending.code is not None)
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)  # to take down all modules would copy them first
