"""Install what EdgeLoom needs: Debian packages, virtual environment, Python and npm packages, front end.

Every part is done only where it is missing, and again when its lock file or sources change. What needs
Django (migrations, the administrator, the demo clusters) is `webapp.ops.prepare`.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from webapp.ops import debian
from webapp.ops.environments import PIP_INSTALL, has_pip, making, without_halves
from webapp.ops.places import (
    FRONTEND,
    GUIDELLM_VENV,
    PYTHON,
    REDIS_DIR,
    ROOT,
    SETUP_DIR,
    VENV,
    echo,
)
from webapp.ops.redis_server import OWN_PROGRAM
from webapp.ops.steps import COMMANDS, Step, log_of, only_one_set_up, run_logged, run_steps

REQUIREMENTS = ROOT / "requirements"
RUNTIME_LOCK = REQUIREMENTS / "runtime.txt"
NODE_VENV = SETUP_DIR / "node"
FRONTEND_SOURCES = (
    "src",
    "public",
    "index.html",
    "replay.html",
    "docs.html",
    "package.json",
    "package-lock.json",
    "tsconfig.json",
    "vite.config.ts",
    "vite.replay.config.ts",
    "firstPage.ts",
)
FETCHED = re.compile(
    r"^ *(?:Downloading|Using cached|Processing) (?:\S*/)?([^\s/-]+)-\S+\.whl(?: (\([^)]+\)))?$", re.MULTILINE
)
"""pip's line on a file that it has begun to fetch: name and size."""


def set_up(*, redis: bool, tests: bool = False) -> bool:
    """Set up all that `up` (or, with `tests`, `test`) needs; returns whether anything had to be done.

    Debian packages, Python packages and the front end are installed beside one another: each waits for the
    network or the disk for a part of its time, and uses one core for the rest.
    """
    packages: list[debian.Package] = []
    if redis:
        packages += debian.REDIS_PACKAGES
    if tests or debian.can_install():  # without them `up` says what does not work
        packages += debian.EMULATOR_PACKAGES
    if tests:
        packages += debian.TEST_PACKAGES
    missing = debian.missing_of(packages)
    own_redis = False
    if missing and not debian.can_install():
        own_redis = any(package.name in missing for package in debian.REDIS_PACKAGES)
        _say_what_is_left_out(debian.missing_of(set(packages) - set(debian.REDIS_PACKAGES)))
        packages = []
    steps = [*python_steps(tests=tests, own_redis=own_redis), *frontend_steps({})]
    if has_pip(VENV) and not debian.missing_of(packages) and all(step.is_done() for step in steps):
        return False
    with only_one_set_up(), ThreadPoolExecutor() as pool:
        if not has_pip(VENV) and debian.can_install():
            debian.install(debian.VENV_PACKAGES)
        lanes = [
            pool.submit(debian.install, packages),
            pool.submit(set_up_frontend),
            pool.submit(_set_up_python, tests=tests, own_redis=own_redis),
        ]
        try:
            worked = [lane.result() for lane in lanes]
        except KeyboardInterrupt:
            COMMANDS.end()
            raise
    return any(worked)


def _say_what_is_left_out(missing: Sequence[str]) -> None:
    if missing:
        echo(f"What needs {', '.join(missing)} does not work here: {debian.remedy(missing)}.")


def set_up_python() -> bool:
    """The virtual environment and the packages of runtime.txt."""
    if has_pip(VENV) and all(step.is_done() for step in python_steps()):
        return False
    with only_one_set_up():
        return _set_up_python()


def _set_up_python(*, tests: bool = False, own_redis: bool = False) -> bool:
    made = make_environment("Virtual environment", VENV)
    steps = python_steps(tests=tests, own_redis=own_redis)
    if not all(step.is_done() for step in steps):
        for half in without_halves(VENV):
            shutil.rmtree(half)
    return run_steps(steps) or made


def make_environment(title: str, path: Path) -> bool:
    """An empty virtual environment with pip, where there is none."""
    if has_pip(path):
        return False
    run_logged(title, making(path), log_of(title), expects="about 5 s")
    return True


def python_steps(*, tests: bool = False, own_redis: bool = False) -> list[Step]:
    """The packages from the lock files, into the virtual environment."""
    steps = [
        *([redis_step()] if own_redis else []),
        packages_step("Python packages", "runtime.txt", "480 MB, of which PyTorch 190 MB, about 40 s"),
        first_import_step(),
    ]
    if tests:
        steps += [
            packages_step("Python packages for tests", "dev.txt", "150 MB, about 30 s"),
            guidellm_step(),
        ]
    return steps


def packages_step(title: str, lock: str, size: str) -> Step:
    """The stamp lies in the environment, so that it goes when the environment goes."""
    wanted = pinned(lock)

    def progress(log: str) -> str:
        if "Installing collected packages" in log:
            there = sum(1 for _ in VENV.glob("lib/python3*/site-packages/*.dist-info/RECORD"))
            return f"unpacking, {min(there, wanted)} of {wanted} packages are there"
        if fetched := FETCHED.findall(log):
            return "fetching " + " ".join(fetched[-1]).strip()
        return f"choosing files, {log.count('Collecting ')} of {wanted} packages"

    return Step(
        title=title,
        command=(
            str(PYTHON),
            *PIP_INSTALL,
            "--progress-bar",
            "off",
            "--requirement",
            str(REQUIREMENTS / lock),
        ),
        stamp=VENV / "loom-stamps" / lock,
        inputs=(REQUIREMENTS / lock,),
        expects=f"{wanted} packages, {size}",
        progress=progress,
    )


def pinned(lock: str) -> int:
    """How many packages a lock file and those that it names hold."""
    lines = (REQUIREMENTS / lock).read_text().splitlines()
    named = sum(pinned(line.removeprefix("-r ")) for line in lines if line.startswith("-r "))
    return named + sum("==" in line for line in lines)


def first_import_step() -> Step:
    return Step(
        title="First import",
        command=(str(PYTHON), "-m", "webapp.ops.first_import"),
        stamp=VENV / "loom-stamps" / "first-import",
        inputs=(RUNTIME_LOCK, Path(__file__).with_name("first_import.py")),
        environment={"PYTHONDONTWRITEBYTECODE": ""},
        expects="compiling what EdgeLoom imports, about 15 s",
    )


def redis_step() -> Step:
    """Redis for a user who cannot install it: a program, so that the version of Python does not matter."""
    lock = REQUIREMENTS / "redis.txt"
    tag = (
        "--platform",
        f"manylinux2014_{platform.machine()}",
        "--python-version",
        "3.12",
        "--implementation",
        "cp",
    )
    wheel = ("--only-binary", ":all:", "--no-deps", "--upgrade", *tag, "--target", str(REDIS_DIR))
    return Step(
        title="Redis",
        command=(str(PYTHON), *PIP_INSTALL, *wheel, "--requirement", str(lock)),
        stamp=REDIS_DIR / "loom-stamp",
        inputs=(lock,),
        outputs=(OWN_PROGRAM,),
        expects="6 MB, about 2 s",
    )


def set_up_guidellm() -> bool:
    """The load generator that `./loom bench serving` and a test use."""
    with only_one_set_up():
        return run_steps([guidellm_step()])


def guidellm_step() -> Step:
    return _environment_step("GuideLLM", GUIDELLM_VENV, "guidellm.txt")


def _environment_step(title: str, environment: Path, lock_name: str) -> Step:
    """An environment of its own, in which a file names the packages of `.venv` to those that it lacks."""
    lock = REQUIREMENTS / lock_name
    packages = "lib/python3*/site-packages"
    commands = (
        f"'{PYTHON}' -m venv --clear '{environment}'",
        f"echo '{VENV}'/{packages} > $(echo '{environment}'/{packages})/base.pth",
        f"'{environment}/bin/pip' install --no-input --disable-pip-version-check --no-deps -r '{lock}'",
    )
    return Step(
        title=title,
        command=("/bin/sh", "-c", " && ".join(commands)),
        stamp=environment / "loom-stamp",
        inputs=(lock,),
        outputs=(environment / "bin" / "python",),
    )


def set_up_frontend() -> bool:
    """Install npm packages from the lock file, then build the front end; looks for Node only when one of them
    is due.
    """
    if all(step.is_done() for step in frontend_steps({})):
        return False
    return run_steps(frontend_steps(node_environment()))


def frontend_steps(environment: dict[str, str]) -> tuple[Step, Step]:
    modules = FRONTEND / "node_modules"
    packages = Step(
        title="npm packages",
        expects="160 packages, 120 MB, about 20 s",
        command=("npm", "ci", "--no-audit", "--no-fund"),
        stamp=modules / ".loom-stamp",
        inputs=(FRONTEND / "package-lock.json",),
        directory=FRONTEND,
        environment=environment,
    )
    build = Step(
        title="Front end build",
        expects="the pages, about 10 s",
        command=("npm", "run", "build"),
        stamp=SETUP_DIR / "stamps" / "frontend",
        inputs=tuple(FRONTEND / name for name in FRONTEND_SOURCES),
        outputs=(FRONTEND / "dist" / "index.html",),
        directory=FRONTEND,
        environment=environment,
    )
    return packages, build


def node_environment() -> dict[str, str]:
    """The environment for npm: PATH with a Node that can build the front end in front; installs one where the
    machine has none.

    It gets an environment of its own: inside .venv it would shadow the machine's Node.
    """
    node, npm = shutil.which("node"), shutil.which("npm")
    if node and npm and node_is_new_enough(version_of(node), version_of(npm)):
        return {}
    lock = REQUIREMENTS / "node.txt"
    step = Step(
        title="Node and npm",
        command=(str(NODE_VENV / "bin" / "python"), *PIP_INSTALL, "--requirement", str(lock)),
        stamp=NODE_VENV / "loom-stamp",
        inputs=(lock,),
        outputs=(NODE_VENV / "bin" / "node", NODE_VENV / "bin" / "npm"),
        expects="60 MB, about 10 s, as this machine has none that can build the pages",
    )
    if not step.is_done():
        make_environment("Environment of Node", NODE_VENV)
        run_steps([step])
    return {"PATH": f"{NODE_VENV / 'bin'}{os.pathsep}{os.environ.get('PATH', '')}"}


def node_is_new_enough(node: tuple[int, ...], npm: tuple[int, ...]) -> bool:
    """Whether the pinned Vite supports it (^20.19 or >= 22.12); npm 10 refuses its optional packages."""
    return ((20, 19) <= node < (21,) or node >= (22, 12)) and npm >= (11,)


def version_of(program: str | Path) -> tuple[int, ...]:
    """The version that `program --version` prints, as numbers; () if the command fails."""
    try:
        answer = subprocess.run([str(program), "--version"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ()
    return tuple(int(number) for number in re.findall(r"\d+", answer.stdout))
