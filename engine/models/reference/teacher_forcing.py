"""Compute the logits of `transformers` after every token that a lossy run has emitted (teacher forcing).

`python -m engine.models.reference.teacher_forcing SPEC.json OUT.safetensors TOKENS.json` computes it in a
process of its own. Once a lossy run has emitted another token than the reference, their later logits follow
different texts and cannot be compared. So the library gets the run's own tokens as input.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from engine.domain.spec import RunSpec
from engine.models.inputs.prompts import pixels_of, requests_of
from engine.models.reference.process import run_apart
from engine.models.reference.transformers_outputs import library_model

if TYPE_CHECKING:
    import torch


def forced_logits(spec: RunSpec, tokens: Sequence[Sequence[int]]) -> list[torch.Tensor]:
    """Logits [new_tokens, V] of every request, `tokens` being what it has emitted.

    Raises `HostError` when the process that computes them fails.
    """
    from safetensors.torch import load_file

    with tempfile.TemporaryDirectory() as folder:
        emitted, out = Path(folder) / "tokens.json", Path(folder) / "logits.safetensors"
        emitted.write_text(json.dumps([list(row) for row in tokens]), encoding="utf-8")
        run_apart("engine.models.reference.teacher_forcing", spec, out, str(emitted))
        named = load_file(out)
    return [named[f"logits.{index}"] for index in range(len(tokens))]


def compute(spec: RunSpec, tokens: Sequence[Sequence[int]]) -> dict[str, torch.Tensor]:
    """`logits.<i>` of every request i, by `transformers`, here and now."""
    import torch

    model, named = library_model(spec), {}
    with torch.inference_mode():
        for request, emitted in zip(requests_of(spec), tokens, strict=True):
            seen = {"input_ids": torch.tensor([[*request.tokens, *emitted[:-1]]])}
            if spec.model.vision:
                pixels = torch.from_numpy(pixels_of(spec, request.index))
                seen["pixel_values"] = pixels[None].to(model.dtype)
            named[f"logits.{request.index}"] = model(**seen, logits_to_keep=len(emitted)).logits[0].clone()
    return named


def main(arguments: list[str]) -> int:
    from safetensors.torch import save_file

    spec_path, out_path, tokens_path = arguments
    spec = RunSpec.parse(json.loads(Path(spec_path).read_text(encoding="utf-8")), spec_path)
    save_file(compute(spec, json.loads(Path(tokens_path).read_text(encoding="utf-8"))), out_path)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
