"""`python -m bench.service.serving`, which `./loom bench serving` runs in namespaces of its own.

A real run serves; GuideLLM asks it one request at a time, several at once, at random times, and in a sweep
from one at a time to as fast as it can. Beside each figure stands that of the run's report.
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.service import load_generator
from bench.service.load import environment, progress, start
from bench.tables.rows import Table
from bench.trials.isolated import found_by, hand_over, parser_of
from bench.trials.servers import Redis, wait_for
from webapp.ops.places import ROOT, OpsError
from webapp.ops.redis_server import free_port
from webapp.ops.services import web, worker
from webapp.ops.setup import set_up_guidellm

REQUESTS, NEW_TOKENS, PROMPT_TOKENS = 16, 16, 16
PROFILES: tuple[dict[str, Any], ...] = (
    {"kind": "synchronous"},
    {"kind": "concurrent", "streams": [2, 4, 8]},
    {"kind": "poisson", "rate": [1.0, 2.0, 3.0]},
    {"kind": "sweep", "sweep_size": 4, "strategy_type": "poisson", "max_concurrency": 8},
)
WORDS = [
    "when",
    "a",
    "function",
    "is",
    "called",
    "its",
    "arguments",
    "are",
    "put",
    "on",
    "the",
    "stack",
    "and",
    "the",
    "frame",
    "begins",
    "there",
]
WORKLOAD = {
    "pattern": "serve",
    "prompt_tokens": PROMPT_TOKENS,
    "new_tokens": NEW_TOKENS,
    "requests": 1000,
    "max_batch": 4,
}


def measure_serving() -> Table:
    """Measure serving by GuideLLM and by the run's report, as root. Raises `RunError` if the figures do not
    agree.
    """
    title = (
        "lab-3 serves demo-lm with megatron, answers of 16 tokens. In each cell GuideLLM's figure, and after "
        "the slash that of the run's report times the dilation; medians where nothing else is said"
    )
    columns = ("profile", "requests", "requests/s", "first token", "95 %", "per token", "request")
    return Table(title, columns, found_by(__name__).rows_unless("The figures do not agree"))


def measure(directory: Path) -> tuple[list[tuple[str, ...]], list[str]]:
    """The rows of the table, and figures that do not agree."""
    set_up_guidellm()
    subprocess.run(("ip", "link", "set", "lo", "up"), check=True)
    redis = Redis(directory)
    redis.start()
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    os.environ.update(environment(directory, redis.server.url))
    os.environ["EDGELOOM_STATE_DIR"] = str(directory / "emulator")
    del os.environ["LOOM_TRIAL_DIRECTORY"]
    importlib.import_module("bench.trials.django_ready")
    prepare = (sys.executable, "-m", "webapp.ops.prepare")
    subprocess.run(prepare, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    from bench.service import load_rows

    children = [start(one, redis, directory) for one in (web(port=port), worker("plan"), worker("emulate"))]
    try:
        wait_for(lambda: load_rows.are_ready({"plan", "emulate"}), "a worker")
        return asked(url, load_rows.token_of("operator", 0))
    finally:
        for child in children:
            child.terminate()
            child.wait()
        redis.kill()


def asked(url: str, key: str) -> tuple[list[tuple[str, ...]], list[str]]:
    import topologies
    from bench.service.clients import Api

    api = Api(url, key)
    body = {
        "cluster": topologies.load("lab-3").model_dump(mode="json"),
        "model": "demo-lm",
        "strategy": "megatron",
        "workload": WORKLOAD,
    }
    run = f"/api/runs/{api.send('POST', '/api/runs', body)['id']}"
    until(api, run, "running")
    progress("GuideLLM")
    found = load_generator.ask(url, key, run.rpartition("/")[2], prompts(), NEW_TOKENS, REQUESTS, PROFILES)
    api.send("POST", f"{run}/end-service")
    report = until(api, run, "finished")["report"]
    rows, problems = [], []
    for name, client, ours in load_generator.beside_the_report(found, report["requests"], report["dilation"]):
        rows.append(row(name, client, ours))
        problems += load_generator.disagreements(name, client, ours, NEW_TOKENS)
    return rows, problems


def prompts() -> list[str]:
    """Texts of equal length in words, so that several can be served together."""
    return [" ".join(WORDS[(at + step) % len(WORDS)] for step in range(6)) for at in range(REQUESTS)]


def until(api: Any, path: str, state: str) -> dict[str, Any]:
    """The run when it is in `state`. Raises `OpsError` if it ends otherwise."""
    while True:
        found: dict[str, Any] = api.send("GET", path)
        if found["status"] == state:
            return found
        if found["status"] in ("finished", "failed", "cancelled"):
            raise OpsError(f"The run is {found['status']}: {found.get('error') or found.get('detail')}")
        time.sleep(0.2)


def row(name: str, client: load_generator.Seen, run: load_generator.Seen) -> tuple[str, ...]:
    def both(one: float, other: float, unit: str = "ms") -> str:
        scale = 1000 if unit == "ms" else 1
        digits = 0 if unit == "ms" else 2
        return f"{scale * one:.{digits}f} / {scale * other:.{digits}f} {unit}".strip()

    return (
        name,
        str(client.requests),
        both(client.rate_per_s, run.rate_per_s, ""),
        both(client.first_token_s, run.first_token_s),
        both(client.first_token_p95_s, run.first_token_p95_s),
        f"{1000 * client.per_token_s:.1f} / {1000 * run.per_token_s:.1f} ms",
        both(client.request_s, run.request_s),
    )


def main() -> int:
    args = parser_of(__doc__).parse_args()
    with tempfile.TemporaryDirectory(prefix="edgeloom-serving-") as directory:
        rows, problems = measure(Path(directory))
    return hand_over(rows, problems, args.result)


if __name__ == "__main__":
    sys.exit(main())
