"""Asks a server with GuideLLM: standard input has what to do, standard output gets the figures, both as JSON.

GuideLLM's versions of some libraries are not EdgeLoom's, so it has an environment of its own, and this
file runs in that (`webapp/ops/setup.py`, `guidellm_step`). It imports nothing of EdgeLoom.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

# Before GuideLLM is imported: one worker process, forked from a server that has imported GuideLLM once.
os.environ |= {
    "GUIDELLM__MAX_WORKER_PROCESSES": "1",
    "GUIDELLM__MP_CONTEXT_TYPE": "forkserver",
    "GUIDELLM__LOGGING__CONSOLE_LOG_LEVEL": "WARNING",
    "HF_HUB_OFFLINE": "1",
}


def main() -> None:
    multiprocessing.set_forkserver_preload(["guidellm.benchmark.entrypoints"])
    asked = json.load(sys.stdin)
    answer, sys.stdout = sys.stdout, sys.stderr  # GuideLLM prints tables
    with tempfile.TemporaryDirectory(prefix="edgeloom-guidellm-") as directory:
        found = [asyncio.run(measure(asked, profile, Path(directory))) for profile in asked["profiles"]]
    json.dump(found, answer)


async def measure(asked: dict[str, Any], profile: dict[str, Any], directory: Path) -> list[dict[str, Any]]:
    """One profile, which a sweep turns into several: the figures of each.

    `asked` has `target`, `key` and `model` of the server, `prompts`, `new_tokens` of each answer, and
    `requests` of each profile.
    """
    from guidellm.benchmark.entrypoints import benchmark_generative_text
    from guidellm.schemas.benchmark import BenchmarkScenario

    rows = directory / "prompts.jsonl"
    rows.write_text("".join(json.dumps({"prompt": text}) + "\n" for text in asked["prompts"]))
    spec = {
        "backend": {
            "kind": "openai_http",
            "target": asked["target"],
            "model": asked["model"],
            "api_key": asked["key"],
            "request_format": "/v1/completions",
            "validate_backend": False,
            "http2": False,
            "max_tokens": asked["new_tokens"],
            "extras": {"body": {"ignore_eos": True}},
        },
        "profile": profile,
        "constraints": [{"kind": "max_requests", "count": asked["requests"]}],
        "data": [{"kind": "json_file", "path": str(rows)}],
        "outputs": [],
    }
    report, _ = await benchmark_generative_text(BenchmarkScenario(spec=spec), progress=False)
    return [figures(one) for one in report.benchmarks]


def figures(benchmark: Any) -> dict[str, Any]:
    """Every completed request, in seconds: when it was sent (since the epoch), its first token after that,
    the mean
    time of a later token, and the whole; with the number of those that failed.
    """
    requests = benchmark.requests
    return {
        "strategy": benchmark.config.strategy.type_,
        "failed": len(requests.errored),
        "requests": [
            {
                "sent_s": one.info.timings.request_start,
                "first_token_s": one.time_to_first_token_ms / 1000,
                "per_token_s": one.inter_token_latency_ms / 1000 if one.output_tokens > 1 else None,
                "request_s": one.request_latency,
                "tokens": one.output_tokens,
            }
            for one in requests.successful
        ],
    }


if __name__ == "__main__":
    main()
