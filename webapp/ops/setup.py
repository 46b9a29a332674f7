"""Install what EdgeLoom needs: Debian packages, virtual environment, Python and npm packages, front end.

Every part is done only where it is missing, and again when its lock file or sources change. What needs
Django (migrations, the administrator, the demo clusters) is `webapp.ops.prepare`.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from webapp.ops import debian
from webapp.ops.places import FRONTEND, GUIDELLM_VENV, PYTHON, ROOT, SETUP_DIR, SITE_VENV, VENV
from webapp.ops.steps import Step, run_logged, run_steps

REQUIREMENTS = ROOT / "requirements"
NODE_VENV = SETUP_DIR / "node"
FRONTEND_SOURCES = (
    "src",
    "public",
    "index.html",
    "docs.html",
    "package.json",
    "package-lock.json",
    "tsconfig.json",
    "vite.config.ts",
    "firstPage.ts",
)


def set_up(*, redis: bool, tests: bool = False) -> bool:
    """Set up all that `up` (or, with `tests`, `test`) needs; returns whether anything had to be done."""
    packages: list[debian.Package] = []
    if redis:
        packages += debian.REDIS_PACKAGES
    if tests or os.geteuid() == 0:  # only root can install them
        packages += debian.EMULATOR_PACKAGES
    if tests:
        packages += debian.TEST_PACKAGES
    worked = [debian.install(packages), set_up_environment()]
    with ThreadPoolExecutor(1) as beside:  # each of the two uses one core for most of its time
        frontend = beside.submit(set_up_frontend)
        worked += [set_up_python(tests=tests), frontend.result()]
    return any(worked)


def set_up_environment() -> bool:
    """The virtual environment, still empty."""
    if PYTHON.exists():
        return False
    debian.install(debian.VENV_PACKAGES)
    run_logged(
        "Virtual environment",
        (sys.executable, "-m", "venv", "--clear", str(VENV)),
        SETUP_DIR / "logs" / "virtual-environment.log",
    )
    return True


def set_up_python(*, tests: bool = False) -> bool:
    """The virtual environment and its packages from the lock files."""
    made = set_up_environment()
    steps = [packages_step("Python packages", "runtime.txt")]
    if tests:
        steps += [packages_step("Python packages for tests", "dev.txt"), guidellm_step()]
    return run_steps(steps) or made


def packages_step(title: str, lock: str) -> Step:
    """The stamp lies in the environment, so that it goes when the environment goes."""
    return Step(
        title=title,
        command=(
            str(PYTHON),
            "-m",
            "pip",
            "install",
            "--no-input",
            "--disable-pip-version-check",
            "--requirement",
            str(REQUIREMENTS / lock),
        ),
        stamp=VENV / "loom-stamps" / lock,
        inputs=(REQUIREMENTS / lock,),
    )


def set_up_guidellm() -> bool:
    """The load generator that `./loom bench serving` and a test use."""
    return run_steps([guidellm_step()])


def set_up_site() -> bool:
    """The builder of the manual as a site, for `./loom docs --site`."""
    return run_steps([_environment_step("Sphinx", SITE_VENV, "site.txt")])


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
    """npm packages from the lock file, then the build; looks for Node only when one of them is due."""
    if all(step.is_done() for step in frontend_steps({})):
        return False
    return run_steps(frontend_steps(node_environment()))


def frontend_steps(environment: dict[str, str]) -> tuple[Step, Step]:
    modules = FRONTEND / "node_modules"
    packages = Step(
        title="npm packages",
        command=("npm", "ci", "--no-audit", "--no-fund"),
        stamp=modules / ".loom-stamp",
        inputs=(FRONTEND / "package-lock.json",),
        directory=FRONTEND,
        environment=environment,
    )
    build = Step(
        title="Front end build",
        command=("npm", "run", "build"),
        stamp=SETUP_DIR / "stamps" / "frontend",
        inputs=tuple(FRONTEND / name for name in FRONTEND_SOURCES),
        outputs=(FRONTEND / "dist" / "index.html",),
        directory=FRONTEND,
        environment=environment,
    )
    return packages, build


def node_environment() -> dict[str, str]:
    """PATH with a Node that can build the front end in front; installs one where the machine has none.

    It gets an environment of its own: inside .venv it would shadow the machine's Node.
    """
    node, npm = shutil.which("node"), shutil.which("npm")
    if node and npm and node_is_new_enough(version_of(node), version_of(npm)):
        return {}
    run_steps(
        [
            Step(
                title="Node and npm",
                command=(
                    "/bin/sh",
                    "-c",
                    f"'{PYTHON}' -m venv --clear '{NODE_VENV}' && '{NODE_VENV}/bin/pip' install --no-input "
                    f"--disable-pip-version-check --requirement '{REQUIREMENTS / 'node.txt'}'",
                ),
                stamp=NODE_VENV / "loom-stamp",
                inputs=(REQUIREMENTS / "node.txt",),
                outputs=(NODE_VENV / "bin" / "node", NODE_VENV / "bin" / "npm"),
            )
        ]
    )
    return {"PATH": f"{NODE_VENV / 'bin'}{os.pathsep}{os.environ.get('PATH', '')}"}


def node_is_new_enough(node: tuple[int, ...], npm: tuple[int, ...]) -> bool:
    """Whether the pinned Vite supports it (^20.19 or >= 22.12); npm 10 refuses its optional packages."""
    return ((20, 19) <= node < (21,) or node >= (22, 12)) and npm >= (11,)


def version_of(program: str | Path) -> tuple[int, ...]:
    """`node --version` as numbers; () if the command fails."""
    try:
        answer = subprocess.run([str(program), "--version"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ()
    return tuple(int(number) for number in re.findall(r"\d+", answer.stdout))
