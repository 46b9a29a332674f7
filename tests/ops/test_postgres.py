"""EdgeLoom on PostgreSQL from Debian's packages: tables, first rows, and the tests of the web API."""

from __future__ import annotations

import os
import pwd
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.ops.conftest import wait_until
from webapp.ops.debian import POSTGRESQL_DIR
from webapp.ops.places import PYTHON, ROOT
from webapp.ops.redis_server import free_port

pytestmark = pytest.mark.postgres


@pytest.fixture(scope="module")
def database_url() -> Iterator[str]:
    """A server on a port of our own. PostgreSQL refuses to run as root, so it runs as its own user."""
    programs = max(POSTGRESQL_DIR.glob("*/bin"), key=lambda path: float(path.parent.name))
    user = "postgres" if os.geteuid() == 0 else pwd.getpwuid(os.geteuid()).pw_name
    directory = Path(tempfile.mkdtemp(prefix="edgeloom-postgres-"))
    shutil.chown(directory, user)
    data, port = directory / "data", free_port()
    initdb = [programs / "initdb", "--pgdata", data, "--username", "loom", "--auth", "trust", "--no-sync"]
    subprocess.run(initdb, check=True, user=user, cwd=directory, stdout=subprocess.DEVNULL)
    server = subprocess.Popen(
        [
            programs / "postgres",
            "-D",
            data,
            "-p",
            str(port),
            "-k",
            directory,
            "-c",
            "listen_addresses=127.0.0.1",
            "-c",
            "fsync=off",
        ],
        user=user,
        cwd=directory,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    url = f"postgres://loom@127.0.0.1:{port}/postgres"
    try:
        wait_until(lambda: server.poll() is not None or answers(url), "PostgreSQL")
        assert server.poll() is None, "PostgreSQL ended at its start"
        yield url
    finally:
        server.terminate()
        server.wait()
        shutil.rmtree(directory)


def answers(url: str) -> bool:
    try:
        psycopg.connect(url).close()
    except psycopg.OperationalError:
        return False
    return True


def run(url: str, *arguments: str, state_dir: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "DATABASE_URL": url, "LOOM_STATE_DIR": str(state_dir)}
    return subprocess.run(
        [str(PYTHON), *arguments], cwd=ROOT, env=environment, capture_output=True, text=True
    )


PREPARE_TWICE = "from webapp.ops.prepare import main; main(); print('again', flush=True); main()"


def test_the_database_is_prepared_once(database_url: str, tmp_path: Path) -> None:
    """Both times in one process, which takes most of its time to start."""
    done = run(database_url, "-c", PREPARE_TWICE, state_dir=tmp_path)
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.split("again\n")
    assert "Administrator admin, password " in first
    assert second == ""
    assert not list(tmp_path.glob("*.sqlite3"))
    with psycopg.connect(database_url) as connection:
        names = connection.execute("SELECT name FROM clusters_cluster ORDER BY name").fetchall()
    assert ("lab-3",) in names


ANY_REQUEST = "openapi/test_any_request.py::test_no_request_that_the_document_allows_meets_a_defect"
FILES = (
    "jobs/test_lease.py",
    "accounts/test_tokens.py",
    "clusters/test_clusters.py",
    "accounts/test_access.py",
    "runs/test_quotas.py",
    "operations/test_backup.py",
    ANY_REQUEST,
)


@pytest.mark.long("webapp", "tests/webapp")
def test_the_web_api_works_on_it(database_url: str, tmp_path: Path) -> None:
    tests = [f"tests/webapp/{name}" for name in FILES]
    done = run(
        database_url,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--create-db",
        *tests,
        state_dir=tmp_path,
    )
    assert done.returncode == 0, done.stdout
    assert int(re.search(r"(\d+) passed", done.stdout).group(1)) > 10
