"""The command line as a person uses it: what a call gives, and what a refusal is."""

from __future__ import annotations

import topologies
from engine.cli.command import Environment
from topologies.showcases import showcase, showcases

ENVIRONMENT = Environment(topologies.load, topologies.names, topologies.presets)
SHOWCASES = ENVIRONMENT._replace(showcases=showcases, showcase=showcase)
PREDICT = ("predict", "lab-3", "--model", "tiny-gpt2", "--weights", "random", "--strategy", "megatron")


class Result:
    def __init__(self, status: int, out: str, err: str):
        self.status, self.out, self.err = status, out, err


def refused(result: Result, *parts: str) -> None:
    """Bad input: status 2, nothing on standard output, one sentence that has all `parts`."""
    assert result.status == 2, result.out
    assert result.out == ""
    assert result.err.count("\n") == 1 and result.err.rstrip().endswith("."), result.err
    assert "Traceback" not in result.err
    for part in parts:
        assert part in result.err
