"""The wheel: what is in it, what it declares, and that it works outside the checkout, without Mininet."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from collections.abc import Sequence
from email.parser import Parser
from pathlib import Path

import pytest

pytestmark = pytest.mark.long(
    "pyproject.toml", "requirements", "edgeloom", "emulator", "engine", "topologies"
)
ROOT = Path(__file__).parents[2]
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
    for name in (name for name in listed.decode().split("\0") if name and not name.startswith("webapp/")):
        if (ROOT / name).is_file():
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
    assert {name.partition("/")[0] for name in names if ".dist-info" not in name} == {
        "edgeloom",
        "emulator",
        "engine",
        "topologies",
    }
    assert {
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
    } <= names


def test_every_python_file_of_the_four_packages_is_in_the_wheel(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    for package in ("edgeloom", "emulator", "engine", "topologies"):
        files = {path.relative_to(ROOT).as_posix() for path in (ROOT / package).rglob("*.py")}
        assert files <= names


def test_the_metadata_declares_the_requirements_files(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
    metadata = Parser().parsestr(archive.read(name).decode())
    declared = metadata.get_all("Requires-Dist") or []
    engine = [line for line in declared if "extra ==" not in line]
    assert sorted(engine) == sorted(requirements("engine"))
    assert set(metadata.get_all("Provides-Extra") or []) == {"torch", "emulator", "results", "s3", "web"}
    assert not [line for line in engine if line.startswith(("torch", "mininet", "Django"))]
    web = [line.partition(";")[0].strip() for line in declared if "extra == 'web'" in line.replace('"', "'")]
    assert len(web) == len(requirements("web"))


def requirements(name: str) -> list[str]:
    lines = (ROOT / "requirements" / f"{name}.in").read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def test_the_installed_engine_is_imported_from_the_wheel(installed: Path, tmp_path: Path) -> None:
    program = "import engine, engine.runs.predict, topologies; print(engine.__file__)"
    assert str(installed.parent) in run([str(installed / "python"), "-c", program], tmp_path)


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


def test_running_without_mininet_is_refused_in_one_sentence(installed: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [str(installed / "edgeloom"), "doctor"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "Traceback" not in done.stderr + done.stdout
    assert "ininet" in done.stdout + done.stderr
