"""The wheel: what is in it, what it declares, and that it works outside the checkout, without Mininet."""

from __future__ import annotations

import ast
import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import venv
import zipfile
from collections.abc import Sequence
from email.parser import Parser
from importlib.metadata import distribution
from pathlib import Path
from urllib.request import urlopen

import pytest
from packaging.requirements import Requirement

from tests.packaging.test_own_method import BLOCK, GUIDE

pytestmark = pytest.mark.long(
    "pyproject.toml", "setup.py", "requirements", "edgeloom", "emulator", "engine", "topologies", "webapp"
)
ROOT = Path(__file__).parents[2]
PAGES = "webapp/frontend/dist"
OWN = ("emulator", "engine", "topologies", "webapp")
NO_MININET = "import sys\nsys.modules['mininet'] = None\n"
"""As sitecustomize.py: importing Mininet then fails as where it is not installed."""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy of the files that git lists: setuptools writes beside its sources."""
    folder = tmp_path_factory.mktemp("wheel")
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    ).stdout
    pages = [path.relative_to(ROOT).as_posix() for path in (ROOT / PAGES).rglob("*")]
    for name in [*filter(None, listed.decode().split("\0")), *pages]:
        if (ROOT / name).is_file() and not name.startswith("webapp/frontend/src/"):
            target = folder / "checkout" / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target)
    run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), "."],
        folder / "checkout",
    )
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh environment's `bin`, with the wheel and, instead of another download, this one's libraries."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False)
    run(
        [
            sys.executable,
            "-m",
            "pip",
            "--python",
            str(folder / "bin/python"),
            "install",
            "--no-deps",
            str(wheel),
        ]
    )
    (site,) = folder.glob("lib/python*/site-packages")
    (site / "libraries.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    (site / "sitecustomize.py").write_text(NO_MININET)
    return folder / "bin"


@pytest.fixture(scope="module")
def bare(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As `pip install edgeloom` leaves it: the wheel, and links to what it requires without an extra."""
    folder = tmp_path_factory.mktemp("bare")
    venv.create(folder, with_pip=False)
    python = str(folder / "bin/python")
    run([sys.executable, "-m", "pip", "--python", python, "install", "--no-deps", str(wheel)])
    (site,) = folder.glob("lib/python*/site-packages")
    for name in closure(requirements("engine")):
        found = distribution(name)
        for top in {file.parts[0] for file in found.files or () if ".." not in file.parts}:
            if not (site / top).exists() and top != "__pycache__":
                (site / top).symlink_to(Path(str(found.locate_file(top))))
    return folder / "bin"


def closure(needed: Sequence[str]) -> set[str]:
    """These libraries and all that they require."""
    found: set[str] = set()
    left = [Requirement(line) for line in needed]
    while left:
        one = left.pop()
        if (one.marker is None or one.marker.evaluate({"extra": ""})) and one.name not in found:
            found.add(one.name)
            left += map(Requirement, distribution(one.name).requires or ())
    return found


def run(command: Sequence[str], directory: Path | None = None) -> str:
    environment = {
        key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "LOOM_METHODS")
    }
    done = subprocess.run(
        command, cwd=directory, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


def test_the_wheel_has_the_code_and_the_data_and_nothing_else(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {name.partition("/")[0] for name in names if ".dist-info" not in name} == {"edgeloom"}
    (top_level,) = (name for name in names if name.endswith("/top_level.txt"))
    assert zipfile.ZipFile(wheel).read(top_level).split() == [b"edgeloom"]
    assert {
        "webapp/frontend/dist/index.html",
        "docs/guides/own-method.md",
        "engine/cli/new_method/method.txt",
        "engine/models/catalogue.toml",
        "engine/models/demo_lm/model.safetensors",
        "engine/models/demo_lm/tokenizer.json",
        "topologies/devices.toml",
        "topologies/published_rates.csv",
        "topologies/lab-3.toml",
        "topologies/traces/walk.csv",
        "topologies/papers/lime-e1.toml",
        "topologies/showcases/lime.toml",
        "engine/experiments/presentation/report.html.jinja",
        "engine/reproductions/coverage.toml",
        "engine/reproductions/experiments/voltage-fig4.toml",
    } <= {name.removeprefix("edgeloom/_own/") for name in names}


def test_every_python_file_of_the_packages_is_in_the_wheel(wheel: Path) -> None:
    names = {name.removeprefix("edgeloom/_own/") for name in zipfile.ZipFile(wheel).namelist()}
    for package in ("edgeloom", *OWN):
        found = (path.relative_to(ROOT).as_posix() for path in (ROOT / package).rglob("*.py"))
        assert {name for name in found if not name.startswith("webapp/frontend/")} <= names


def test_no_module_of_the_wheel_imports_or_names_one_at_the_top(wheel: Path) -> None:
    """Also texts that are the name of a module, which Python, Django and Celery import."""
    archive = zipfile.ZipFile(wheel)
    modules = {name for name in archive.namelist() if name.endswith(".py")}
    own = {name.removeprefix("edgeloom/_own/").removesuffix(".py").replace("/", ".") for name in modules}
    for name in modules:
        for node in ast.walk(ast.parse(archive.read(name))):
            if isinstance(node, ast.ImportFrom):
                said = [node.module or ""]
            elif isinstance(node, ast.Import):
                said = [one.name for one in node.names]
            elif isinstance(node, ast.Constant) and node.value in own:
                said = [str(node.value)]
            else:
                continue
            assert not [text for text in said if text.partition(".")[0] in OWN], f"{name}: {said}"


def test_the_metadata_declares_the_requirements_files(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
    metadata = Parser().parsestr(archive.read(name).decode())
    declared = metadata.get_all("Requires-Dist") or []
    engine = [line for line in declared if "extra ==" not in line]
    assert sorted(engine) == sorted(requirements("engine"))
    extras = {"torch", "emulator", "results", "drawings", "pictures", "s3", "server", "node"}
    assert set(metadata.get_all("Provides-Extra") or []) == extras
    assert not [line for line in engine if line.startswith(("torch", "mininet", "Django"))]
    is_server = [line for line in declared if "extra == 'server'" in line.replace('"', "'")]
    of_server = ("drawings", "pictures", "torch", "emulator", "results", "web")
    assert len(is_server) == sum(map(len, map(requirements, of_server)))


def requirements(name: str) -> list[str]:
    lines = (ROOT / "requirements" / f"{name}.in").read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def test_packages_of_anybody_called_as_ours_harm_nobody(installed: Path, tmp_path: Path) -> None:
    """Python finds them first, and they are what `import engine` gives."""
    for name in OWN:
        (tmp_path / f"{name}.py").write_text("IS_MINE = True\n", encoding="utf-8")
    program = (
        "import engine, webapp, edgeloom; assert engine.IS_MINE and webapp.IS_MINE; "
        "print(edgeloom.predict('lab-3', 'demo-lm', 'voltage', prompt_tokens=4).outcome.kind)"
    )
    assert run([str(installed / "python"), "-c", program], tmp_path) == "finished\n"
    assert "demo-lm" in run([str(installed / "edgeloom"), "list", "models"], tmp_path)


def test_the_console_script_predicts_outside_the_checkout(installed: Path, tmp_path: Path) -> None:
    command = ["predict", "lab-3", "--model", "demo-lm", "--strategy", "voltage", "--new-tokens", "2"]
    run([str(installed / "edgeloom"), *command, "--prompt", "The with", "--json", "out.json"], tmp_path)
    report = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))
    assert report["outcome"]["kind"] == "finished"
    assert report["latency_s"] > 0


def test_the_console_script_lists_what_there_is(installed: Path, tmp_path: Path) -> None:
    models = json.loads(run([str(installed / "edgeloom"), "list", "models", "--json"], tmp_path))
    assert "demo-lm" in {row["name"] for row in models if row["trained"]}
    clusters = json.loads(run([str(installed / "edgeloom"), "list", "clusters", "--json"], tmp_path))
    assert "lab-3" in {row["name"] for row in clusters}


def test_a_method_of_ones_own_is_written_installed_and_predicted(installed: Path, tmp_path: Path) -> None:
    """By somebody who has nothing but the wheel."""
    edgeloom, python = str(installed / "edgeloom"), str(installed / "python")
    run([edgeloom, "new", "method", "my-idea"], tmp_path)
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "--no-deps", "--no-build-isolation"]
    run([*pip, "--no-index", str(tmp_path / "my-idea")])
    strategies = json.loads(run([edgeloom, "list", "strategies", "--json"], tmp_path))
    assert [row["from"] for row in strategies if row["name"] == "my-idea"] == ["my-idea 0.1.0"]
    command = ["predict", "lab-4", "--model", "demo-lm", "--strategy", "my-idea", "--prompt-tokens", "4"]
    run([edgeloom, *command, "--json", "out.json"], tmp_path)
    report = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))
    assert report["outcome"]["kind"] == "finished"
    assert report["spec"]["method"]["version"] == "0.1.0"


def test_the_server_serves_pages_api_and_manual_and_keeps_its_data_in_the_persons_directory(
    installed: Path, tmp_path: Path
) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "REDIS_URL")}
    environment |= {"XDG_STATE_HOME": str(tmp_path), "HOME": str(tmp_path)}
    server = subprocess.Popen(
        [str(installed / "edgeloom"), "up", "--without-model", "--port", str(port)],
        cwd=tmp_path,
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert server.stderr is not None
    try:
        said = next((line for line in server.stderr if "is ready" in line or "edgeloom up:" in line), "")
        assert "EdgeLoom is ready" in said, said
        for page, has in (("", "<!doctype html>"), ("docs/guides/own-method", "edgeloom.method")):
            with urlopen(f"http://127.0.0.1:{port}/{page}") as answer:
                assert has in answer.read().decode()
        assert (tmp_path / "edgeloom" / "edgeloom.sqlite3").is_file()
    finally:
        server.send_signal(signal.SIGINT)
        server.communicate()
    assert server.returncode == 0


def test_running_without_mininet_is_refused_in_one_sentence(installed: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [str(installed / "edgeloom"), "doctor"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "Traceback" not in done.stderr + done.stdout
    assert "ininet" in done.stdout + done.stderr
    assert "run pip install 'edgeloom[emulator]'" in " ".join(done.stdout.split())


def test_what_people_read_calls_the_command_edgeloom(installed: Path, tmp_path: Path) -> None:
    program = (
        "from pathlib import Path\n"
        "from edgeloom._own.engine.domain.command_name import COMMAND\n"
        "from edgeloom._own.webapp.base.front_end import why_no_pages\n"
        "print(COMMAND, why_no_pages(Path('nowhere')), why_no_pages())"
    )
    assert run([str(installed / "python"), "-c", program], tmp_path) == (
        "edgeloom There are no pages in nowhere, so only the API answers: install a wheel that was built in "
        "a checkout with a built front end. \n"
    )


def test_without_the_server_up_is_refused_in_one_sentence(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['django'] = None\n")
    done = subprocess.run(
        [str(installed / "edgeloom"), "up"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr == (
        "edgeloom up: this needs the server, which is not installed: run pip install 'edgeloom[server]'.\n"
    )


OTHERS = (
    "list strategies", "list metrics", "show lab-3", "manual", "manual own-method", "doctor", "up",
    "models list",
    "advise lab-4 --model demo-lm --prompt-tokens 8", "run lab-4 --model demo-lm --strategy voltage",
    "run lab-4 --model demo-lm --strategy voltage --prompt-tokens 4", "experiment predict scaling",
    "experiment report scaling", "calibrate", "node --join http://127.0.0.1:1 --token node_x", "study --help",
    "predict lab-3 --model minilm --strategy voltage --prompt hi",
)  # fmt: skip


def test_with_the_engine_alone_every_command_of_the_guide_works_or_names_the_extra_that_it_needs(
    bare: Path, tmp_path: Path
) -> None:
    edgeloom, wrong, lacking = str(bare / "edgeloom"), [], 0
    commands = []
    for block in BLOCK.finditer(GUIDE.read_text(encoding="utf-8")):
        if block["file"]:
            (tmp_path / block["file"]).write_text(block["text"], encoding="utf-8")
        elif block["kind"] == "python":
            commands.append([str(bare / "python"), "-c", block["text"]])
        elif block["kind"] == "sh":
            commands += [[edgeloom, *shlex.split(line)[1:]] for line in block["text"].splitlines()]
    commands += [[edgeloom, *line.split()] for line in OTHERS]
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    for command in commands:
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        said = " ".join((done.stdout + done.stderr).split())
        is_script = command[0] != edgeloom
        lacking += (names_extra := "run pip install 'edgeloom[" in said)
        if (done.returncode and not names_extra) or ("Traceback" in said and not is_script):
            wrong.append(f"{' '.join(command[1:])[:80]}: {said[-300:]}")
    assert wrong == [] and 0 < lacking < len(commands)
