"""The Muon optimiser: momentum whose matrix is orthogonalised before it is applied (K. Jordan, 2024).

It needs few steps: training takes minutes on one core. The Newton-Schulz iteration runs in float32, since a
CPU without bfloat16 products is several times slower in the usual half precision.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch
from torch import Tensor, nn


class Muon(torch.optim.Optimizer):
    """The optimiser Muon, for weight matrices; other parameters need another one."""

    def __init__(self, params: Iterable[nn.Parameter], lr: float):
        super().__init__(params, {"lr": lr, "momentum": 0.95, "weight_decay": 0.1})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            for param in group["params"]:
                if param.grad is None:
                    continue
                velocity = self.state[param].setdefault("velocity", torch.zeros_like(param))
                velocity.lerp_(param.grad, 1 - group["momentum"])
                update = orthogonalise(param.grad.lerp(velocity, group["momentum"]))
                scale = max(1.0, param.shape[1] / param.shape[0]) ** 0.5
                param.mul_(1 - group["lr"] * group["weight_decay"])
                param.add_(update, alpha=-group["lr"] * scale)


def orthogonalise(matrix: Tensor, steps: int = 5) -> Tensor:
    """The nearest matrix with all singular values about 1, by the quintic Newton-Schulz iteration."""
    wide = matrix.shape[0] <= matrix.shape[1]
    x = matrix if wide else matrix.T
    x = x / (x.norm() + 1e-7)
    for _ in range(steps):
        gram = x @ x.T
        x = 3.4445 * x + (-4.7750 * gram + 2.0315 * gram @ gram) @ x
    result: Tensor = x if wide else x.T
    return result
