"""What lossy strategies cost in quality and what they gain in time: the curve of accuracy against latency."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import topologies
from bench.tables.chart import Chart, lines
from bench.tables.rows import Table
from engine.domain.spec import RunSpec
from engine.domain.units import human_s
from engine.domain.workload import Workload
from engine.models import catalogue
from engine.runs.predict import predict

if TYPE_CHECKING:
    from bench.strategies.choices import Question

CLUSTER, MODEL = "lab-4", "demo-lm"
WINDOWS, PROMPT, CONTINUATION, CHOICES, NEW_TOKENS = 64, 64, 4, 4, 16
LOSSLESS: tuple[str, str, dict[str, Any]] = ("the model itself", "single", {})
LOSSY: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("8-bit weights", "edge_only", {"bits": "8"}),
    ("4-bit weights", "edge_only", {"bits": "4"}),
    *(
        (
            f"T_max {ratio:g} of nominal, importance {kind}",
            "edgeformer",
            {"prune": "paper", "t_max_mode": "ratio", "t_max": ratio, "importance": kind},
        )
        for kind in ("var", "paper")
        for ratio in (0.88, 0.7, 0.5)
    ),
)


def measure_accuracy(model: str = "", data: Path | None = None) -> Table:
    """Accuracy and time of every lossy strategy: of the demo model on its held-out text, or of the model in
    the directory `model` on the questions in `data`.
    """
    # torch takes seconds to import, and every command of ./loom imports this module
    from bench.strategies.choices import asked_of, read_questions, share_right
    from bench.strategies.score import held_out_windows, logits_of, score

    base = _spec(model or MODEL, *LOSSLESS[1:])
    windows = held_out_windows(base, WINDOWS, PROMPT, CONTINUATION)
    questions = read_questions(data, base) if data else asked_of(windows, CHOICES)
    own, rows, points = logits_of(base, windows), [], []
    for title, strategy, params in (LOSSLESS, *LOSSY):
        spec = _spec(model or MODEL, strategy, params)
        found = score(logits_of(spec, windows), own, windows)
        right, latency_s = share_right(questions, partial(logits_of, spec)), _latency_s(spec, questions)
        points.append((f"{strategy} {params.get('importance', '')}".strip(), latency_s, right))
        rows.append(
            (
                title,
                strategy,
                human_s(latency_s),
                f"{right:.1%}",
                f"{found.perplexity:.1f}",
                f"{found.accuracy:.1%}",
                f"{found.kl_mean:.4f}",
                f"{found.top1_agreement:.1%}",
            )
        )
    held_out = f"of held-out text: which of {CHOICES} texts of {CONTINUATION} tokens follows {PROMPT} tokens"
    what = f"of {data.name}" if data else f"{held_out}; chance finds {1 / CHOICES:.0%}"
    text = (
        f"{base.model.name} on {CLUSTER}. Right: {len(questions)} questions {what}. Time: a prompt of that "
        f"length and {NEW_TOKENS} tokens, predicted. The other columns: every token of {len(windows)} true "
        "continuations; KL in nats per token, top-1: same likeliest token as the model."
    )
    columns = ("what", "strategy", "time", "right", "perplexity", "next token", "KL", "top-1")
    chart = Chart(
        "Accuracy against latency", "predicted time", "right", lines(points), human_s, "{:.0%}".format
    )
    return Table(text, columns, tuple(rows), chart)


def _latency_s(spec: RunSpec, questions: tuple[Question, ...]) -> float:
    longest = max(len(question.prompt) for question in questions)
    workload = Workload(prompt_tokens=longest, new_tokens=NEW_TOKENS)
    return predict(spec.model_copy(update={"workload": workload})).latency_s or 0.0


def _spec(name: str, strategy: str, params: dict[str, Any]) -> RunSpec:
    model, weights = catalogue.resolve(name, None)
    cluster = topologies.load(CLUSTER)
    return RunSpec(cluster=cluster, model=model, weights=weights, strategy=strategy, params=params)
