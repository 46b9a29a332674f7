"""The source's own work beside the strategy: prompts in, tokens out, in either world."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from engine.strategies.contract import Step
from engine.tensors import Meta, Tensor
from engine.workload import Request
from engine.worlds.device import Device

if TYPE_CHECKING:
    import torch


class _Source:
    """What both worlds' sources mark."""

    def __init__(self, device: Device):
        self.device = device
        self.last_s: dict[int, float] = {}

    def arrive(self, requests: Sequence[Request]) -> None:
        for request in requests:
            self.last_s[request.index] = self.device.now_s

    def emit(self, step: Step, tokens: Sequence[int | None]) -> None:
        """Mark every sequence's new token and its time since the one before."""
        now_s = self.device.now_s
        for request, token in zip(step.requests, tokens, strict=True):
            latency_s, self.last_s[request] = now_s - self.last_s[request], now_s
            self.device.mark(
                "token_emitted", request=request, index=step.index, token=token, latency_s=latency_s
            )


class SimulatedSource(_Source):
    """Knows how many tokens there are, not which."""

    def prompt(self, requests: Sequence[Request]) -> Tensor:
        self.arrive(requests)
        return Meta((len(requests), len(requests[0].tokens)), "int64")

    def next_tokens(self, step: Step, logits: Tensor) -> Tensor:
        self.emit(step, [None] * step.batch)
        return Meta((step.batch, 1), "int64")

    def hidden(self, step: Step, hidden: Tensor) -> None:
        """An encoder's output needs nothing more."""


class RealSource(_Source):
    """Greedy: the most likely token. Keeps logits or hidden states, to be compared with the reference."""

    def __init__(self, device: Device):
        super().__init__(device)
        self.logits: dict[int, list[torch.Tensor]] = {}
        self.states: dict[int, torch.Tensor] = {}

    def prompt(self, requests: Sequence[Request]) -> Tensor:
        import torch

        self.arrive(requests)
        return torch.tensor([request.tokens for request in requests], dtype=torch.int64)

    def next_tokens(self, step: Step, logits: Tensor) -> Tensor:
        """Token ids [B, 1] from logits [B, V]."""
        tokens = logits.argmax(dim=-1, keepdim=True)
        self.emit(step, tokens[:, 0].tolist())
        for row, request in enumerate(step.requests):
            self.logits.setdefault(request, []).append(logits[row].clone())
        return tokens

    def hidden(self, step: Step, hidden: Tensor) -> None:
        for row, request in enumerate(step.requests):
            self.states[request] = hidden[row].clone()

    def save(self, path: Path) -> None:
        """One tensor per request: `logits.<i>` [new_tokens, V] or `hidden.<i>` [T, D]."""
        import torch
        from safetensors.torch import save_file

        tensors = {f"logits.{request}": torch.stack(rows) for request, rows in self.logits.items()}
        tensors |= {f"hidden.{request}": states for request, states in self.states.items()}
        save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, path)
