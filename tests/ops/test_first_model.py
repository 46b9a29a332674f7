"""The model of the first run, fetched beside a service that stops meanwhile."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

from webapp.ops.places import ROOT


def children(pid: int) -> list[Path]:
    return [Path("/proc", one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_a_fetch_that_is_stopped_leaves_no_files_and_no_process(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as index:  # takes a request, and never answers
        index.settimeout(120)
        settings = {
            "LOOM_STATE_DIR": str(tmp_path),
            "PIP_INDEX_URL": f"http://127.0.0.1:{index.getsockname()[1]}/simple",
            "PIP_CONFIG_FILE": os.devnull,
        }
        command = (sys.executable, "-m", "webapp.ops.first_model")
        with subprocess.Popen(command, cwd=ROOT, env={**os.environ, **settings}) as fetching:
            connection, _ = index.accept()
            with connection:
                (pip,) = children(fetching.pid)
                fetching.send_signal(signal.SIGTERM)
                fetching.wait()
                assert not pip.exists()
    assert not list((tmp_path / "models").iterdir())
