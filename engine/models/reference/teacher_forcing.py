"""Compute what `transformers` says after every token that a run has emitted (teacher forcing).

`python -m engine.models.reference.teacher_forcing SPEC.json OUT.safetensors TOKENS.json NUMBERS` computes it
in a process of its own. Once a run has emitted another token than the reference, their later logits follow
different texts and cannot be compared. So the library gets the run's own tokens as input. NUMBERS "own" are
the model's; "precise" ones are twice as wide, for the same weights: the difference of both is the rounding
error of the model's own.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from engine.domain.spec import RunSpec
from engine.domain.workload import Request
from engine.models.inputs.prompts import pixels_of, requests_of
from engine.models.reference.process import run_apart
from engine.models.reference.transformers_outputs import leave_out_unused, library_model

if TYPE_CHECKING:
    import torch

Numbers = Literal["own", "precise"]
Tokens = Sequence[Sequence[int]]
"""What a run has emitted for each request; nothing for each where the model generates none."""
Forced = Callable[[Tokens, Numbers], "list[torch.Tensor]"]
"""`forced(tokens, numbers)`: logits [new_tokens, V] of every request, or its hidden states [T, D]."""
TWICE_AS_WIDE = {"bfloat16": "float32", "float32": "float64"}


def forced_outputs(spec: RunSpec, tokens: Tokens, numbers: Numbers) -> list[torch.Tensor]:
    """Logits [new_tokens, V] of every request, `tokens` being what it has emitted; hidden states [T, D], or a
    classifier's logits [C], where it generates none.

    Raises `HostError` when the process that computes them fails.
    """
    from safetensors.torch import load_file

    with tempfile.TemporaryDirectory() as folder:
        emitted, out = Path(folder) / "tokens.json", Path(folder) / "outputs.safetensors"
        emitted.write_text(json.dumps([list(row) for row in tokens]), encoding="utf-8")
        run_apart("engine.models.reference.teacher_forcing", spec, out, str(emitted), numbers)
        named = load_file(out)
    return [named[str(index)] for index in range(len(tokens))]


def compute(spec: RunSpec, tokens: Tokens, numbers: Numbers = "own") -> list[torch.Tensor]:
    """Compute `forced_outputs` in this process."""
    import torch

    model = library_model(spec)
    if numbers == "precise":
        model = model.to(getattr(torch, TWICE_AS_WIDE[spec.model.dtype]))
    with torch.inference_mode():
        return [
            _outputs(spec, model, request, emitted).clone()
            for request, emitted in zip(requests_of(spec), tokens, strict=True)
        ]


def _outputs(spec: RunSpec, model: Any, request: Request, emitted: Sequence[int]) -> torch.Tensor:
    import torch

    seen = {}
    if spec.model.reads_text:
        seen["input_ids"] = torch.tensor([request.tokens])
    if spec.model.vision:
        pixels = torch.from_numpy(pixels_of(spec, request.index)).to(getattr(torch, spec.model.dtype))
        seen["pixel_values"] = pixels[None].to(model.dtype)
    if spec.model.num_classes:
        classes: torch.Tensor = model(**seen).logits[0]
        return classes
    if not emitted:
        states: torch.Tensor = model.base_model(**seen).last_hidden_state[0]
        return states
    first = model(**seen, use_cache=True, logits_to_keep=1)
    if len(emitted) == 1:
        return torch.cat([first.logits[0]])
    # in a pass of its own: an emitted token may have the id that stands for an image in a prompt
    later = model(input_ids=torch.tensor([emitted[:-1]]), past_key_values=first.past_key_values)
    return torch.cat([first.logits[0], later.logits[0]])


def main(arguments: list[str]) -> int:
    from safetensors.torch import save_file

    leave_out_unused()
    spec_path, out_path, tokens_path, numbers = arguments
    assert numbers in ("own", "precise"), numbers
    spec = RunSpec.parse(json.loads(Path(spec_path).read_text(encoding="utf-8")), spec_path)
    tokens = json.loads(Path(tokens_path).read_text(encoding="utf-8"))
    outputs = compute(spec, tokens, "precise" if numbers == "precise" else "own")
    save_file({str(index): tensor.contiguous() for index, tensor in enumerate(outputs)}, out_path)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
