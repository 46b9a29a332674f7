"""Logits that stay on the devices which computed them, kept for the proof of a run alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


def named_pieces(
    requests: Sequence[int], index: int, start: int, logits: torch.Tensor
) -> dict[str, torch.Tensor]:
    """One per request: `piece.<request>.<index>.<start>`, the logits [n] of token `index` from `start` on."""
    return {f"piece.{request}.{index}.{start}": logits[row] for row, request in enumerate(requests)}


def save_pieces(folder: Path, rank: int, pieces: dict[str, torch.Tensor]) -> None:
    """Write the pieces of device `rank` beside the outputs of the source."""
    from safetensors.torch import save_file

    contiguous = {name: piece.clone() for name, piece in pieces.items()}
    save_file(contiguous, folder / f"pieces-{rank}.safetensors")
