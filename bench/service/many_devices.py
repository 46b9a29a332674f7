"""`python -m bench.service.many_devices`, which `./loom bench many-devices` runs in namespaces of its own: a
service whose pages are asked for while it emulates a run of very many devices.
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import topologies
from bench.fuzz.busy import busy_machine
from bench.service.idle import started
from bench.service.load import progress, quantiles
from bench.tables.rows import Table
from bench.trials.isolated import found_by, hand_over, parser_of
from topologies.parts import link_preset
from topologies.shapes import copies, star
from webapp.ops.places import OpsError
from webapp.ops.redis_server import free_port

DEVICES = (16, 64, 128)
METHOD, MODEL = "voltage", "demo-lm"
WORKLOAD = {"prompt": "The with statement", "new_tokens": 8}
BOARD, LINK = "raspberry-pi-4", "gigabit-ethernet"
LOOK_EVERY_S = 0.5
PATHS = ("/api/runs?limit=50", "/api/health", "/api/machines", "/api/clusters")
ENDS = ("finished", "failed", "cancelled")
PATIENCE_S = 900.0
"""No run takes so long: one that does is cancelled, and its row says so."""


def measure_many_devices(busy: int) -> Table:
    """Measure runs of many devices and the answers of the service meanwhile, as root."""
    beside = f"beside {busy} busy processes" if busy else "beside nothing else"
    title = (
        f"A run of {METHOD} with {MODEL} on so many Raspberry Pi 4 at a time, {beside}, while a client asks "
        f"for four lists every {LOOK_EVERY_S:g} s. Start: from the request until its clock starts"
    )
    columns = (
        "devices",
        "start",
        "report",
        "its end",
        "valid",
        "answers",
        "median",
        "95 %",
        "most",
    )
    return Table(title, columns, found_by(__name__, "--busy", str(busy)).rows_unless("A request was lost"))


def measure(directory: Path, busy: int) -> tuple[list[tuple[str, ...]], list[str]]:
    """The rows of the table, and requests that were not answered."""
    subprocess.run(("ip", "link", "set", "lo", "up"), check=True)
    os.environ["LOOM_STATE_DIR"] = str(directory)
    port = free_port()
    with started(str(directory), "--without-model", port=port), busy_machine(busy):
        importlib.import_module("bench.trials.django_ready")
        from bench.service.clients import Api
        from bench.service.load_rows import token_of

        key = token_of("operator", 0)
        api, looking = (Api(f"http://127.0.0.1:{port}", key) for _ in range(2))
        rows = [row_of(count, api, looking) for count in DEVICES]
        return rows, [f"{one.path}: {one.status}" for one in looking.requests if one.status >= 400]


def row_of(count: int, api: Any, looking: Any) -> tuple[str, ...]:
    """Start one run and wait for its end, while `looking` asks for lists."""
    progress(f"{count} devices")
    over, before = threading.Event(), len(looking.requests)
    viewer = threading.Thread(target=look, args=(looking, over))
    viewer.start()
    try:
        began_s = time.monotonic()
        answer = api.send("POST", "/api/runs", request_of(count))
        if answer is None:
            raise OpsError(f"the request of a run of {count} devices was answered with {api.requests[-1]}")
        run, start_s = ended(api, answer["id"], began_s)
        took_s = time.monotonic() - began_s
    finally:
        over.set()
        viewer.join()
    times_s = [one.took_s for one in looking.requests[before:]]
    middle, most = quantiles(times_s)
    valid = (run["report"] or {}).get("fidelity", {}).get("valid")
    return (
        str(count),
        "–" if start_s is None else f"{start_s:.0f} s",
        f"{took_s:.0f} s",
        run["status"] if run["status"] == "finished" else f"{run['status']}: {run['error'] or run['detail']}",
        {True: "yes", False: "no", None: "–"}[valid],
        str(len(times_s)),
        middle,
        most,
        f"{1000 * max(times_s):.0f} ms",
    )


def look(api: Any, over: threading.Event) -> None:
    while not over.wait(LOOK_EVERY_S):
        for path in PATHS:
            api.send("GET", path)


def ended(api: Any, run_id: int, began_s: float) -> tuple[dict[str, Any], float | None]:
    """The run at its end, and after how many seconds it was running first."""
    start_s = None
    while True:
        run: dict[str, Any] = api.send("GET", f"/api/runs/{run_id}")
        if run["status"] in ENDS:
            return run, start_s
        if start_s is None and run["status"] == "running":
            start_s = time.monotonic() - began_s
        if time.monotonic() - began_s > PATIENCE_S:
            api.send("POST", f"/api/runs/{run_id}/cancel")
        time.sleep(LOOK_EVERY_S)


def request_of(count: int) -> dict[str, Any]:
    boards = copies(topologies.preset(BOARD), count)
    cluster = star(boards, link_preset(LINK).between(boards[0].name, "hub"))
    return {
        "cluster": cluster.model_dump(mode="json"),
        "model": MODEL,
        "strategy": METHOD,
        "workload": WORKLOAD,
    }


def main() -> int:
    parser = parser_of(__doc__)
    parser.add_argument("--busy", type=int, default=0)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="edgeloom-many-") as directory:
        rows, problems = measure(Path(directory), args.busy)
    return hand_over(rows, problems, args.result)


if __name__ == "__main__":
    sys.exit(main())
