"""One process of a baseline: a plain torch model over torch.distributed's gloo, timed.

`python -m bench.native.gloo_rank JSON` runs one rank of tensor parallelism ("tensor") or of a pipeline
("pipeline"); rank 0 prints the seconds of the first token and of each later one, in every round. With one
rank both are plain torch. Only time is measured: the weights are random, and the answer is not looked at.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor

PORT = 29400


class Task(NamedTuple):
    """What one rank does; `addresses` are those of all ranks."""

    kind: str
    rank: int
    addresses: tuple[str, ...]
    layers: int
    hidden: int
    heads: int
    intermediate: int
    vocab: int
    prompt: int
    new_tokens: int


class Layer:
    """One Llama layer, or a rank's heads and columns of it; `reduce` adds the partial sums."""

    def __init__(self, task: Task, share: int, reduce: Any):
        inner, columns = task.hidden // share, task.intermediate // share
        self.head_dim, self.reduce = task.hidden // task.heads, reduce
        self.q, self.k, self.v = (torch.randn(inner, task.hidden) / 30 for _ in range(3))
        self.o = torch.randn(task.hidden, inner) / 30
        self.up, self.gate = (torch.randn(columns, task.hidden) / 30 for _ in range(2))
        self.down = torch.randn(task.hidden, columns) / 30
        self.norm = torch.ones(task.hidden)
        self.cache = torch.zeros(2, 1, inner // self.head_dim, task.prompt + task.new_tokens, self.head_dim)

    def forward(self, x: Tensor, seen: int, turns: tuple[Tensor, Tensor]) -> Tensor:
        h, rows = F.rms_norm(x, self.norm.shape, self.norm), x.shape[1]
        q, k, v = (
            F.linear(h, w).view(1, rows, -1, self.head_dim).transpose(1, 2) for w in (self.q, self.k, self.v)
        )
        q, k = _turned(q, *turns), _turned(k, *turns)
        self.cache[0, :, :, seen : seen + rows] = k
        self.cache[1, :, :, seen : seen + rows] = v
        keys, values = self.cache[:, :, :, : seen + rows]
        context = F.scaled_dot_product_attention(q, keys, values, is_causal=rows > 1)
        x = x + self.reduce(F.linear(context.transpose(1, 2).flatten(2), self.o))
        h = F.rms_norm(x, self.norm.shape, self.norm)
        y: Tensor = x + self.reduce(
            F.linear(F.silu(F.linear(h, self.gate)) * F.linear(h, self.up), self.down)
        )
        return y


class Rank:
    """The rank's process group, its layers and the ends of the model."""

    def __init__(self, task: Task):
        self.task, self.size = task, len(task.addresses)
        self.group = _gloo(task) if self.size > 1 else None
        tensor = task.kind == "tensor"
        bounds = [task.layers * at // self.size for at in (task.rank, task.rank + 1)]
        count = task.layers if tensor else bounds[1] - bounds[0]
        share = self.size if tensor else 1
        reduce = self._sum if tensor and self.size > 1 else lambda x: x
        self.layers = [Layer(task, share, reduce) for _ in range(count)]
        self.table, self.head = (torch.randn(task.vocab, task.hidden) / 30 for _ in range(2))
        self.norm = torch.ones(task.hidden)
        self.turns = _turns(task.prompt + task.new_tokens, task.hidden // task.heads)

    def _sum(self, x: Tensor) -> Tensor:
        assert self.group is not None
        self.group.allreduce([x]).wait()
        return x

    def tokens(self, ids: Tensor, seen: int) -> Tensor:
        """One pass: ids [1, T] → the next token's id [1, 1] on every rank that needs it."""
        if self.task.kind == "tensor" or self.size == 1:
            x = F.embedding(ids, self.table)  # table and head are on every rank, as in torch's examples
            return self._next(self._through(x, seen))
        return self._staged(ids, seen)

    def _staged(self, ids: Tensor, seen: int) -> Tensor:
        """A pipeline: the last stage has the head and sends the token's id to the first."""
        rank, group, last = self.task.rank, self.group, self.size - 1
        assert group is not None
        if rank:
            x = torch.empty(1, ids.shape[1], self.task.hidden)
            group.recv([x], rank - 1, 0).wait()
        else:
            x = F.embedding(ids, self.table)
        x = self._through(x, seen)
        if rank < last:
            group.send([x], rank + 1, 0).wait()
        token = self._next(x) if rank == last else torch.zeros(1, 1, dtype=torch.int64)
        if rank == last:
            group.send([token], 0, 1).wait()
        elif rank == 0:
            group.recv([token], last, 1).wait()
        return token

    def _through(self, x: Tensor, seen: int) -> Tensor:
        cos, sin = (table[seen : seen + x.shape[1]] for table in self.turns)
        for layer in self.layers:
            x = layer.forward(x, seen, (cos, sin))
        return x

    def _next(self, x: Tensor) -> Tensor:
        last = F.rms_norm(x[:, -1:], self.norm.shape, self.norm)
        return F.linear(last, self.head).argmax(dim=-1)

    def times(self, rounds: int) -> list[tuple[float, float]]:
        """Seconds of the first token, and of each later one in the mean, in every round after one more."""
        return [self._round() for _ in range(1 + rounds)][1:]

    def _round(self) -> tuple[float, float]:
        task = self.task
        if self.group is not None:
            self.group.barrier().wait()
        ids, ends_s = torch.ones(1, task.prompt, dtype=torch.int64), [time.monotonic()]
        seen = 0
        for _ in range(task.new_tokens):
            token = self.tokens(ids, seen)
            seen, ids = seen + ids.shape[1], token
            ends_s.append(time.monotonic())
        return ends_s[1] - ends_s[0], (ends_s[-1] - ends_s[1]) / (task.new_tokens - 1)


def _turns(rows: int, head_dim: int) -> tuple[Tensor, Tensor]:
    """cos and sin of Llama's rotary positions: [rows, head_dim]."""
    steps = torch.arange(0, head_dim, 2, dtype=torch.float32) / head_dim
    angles = torch.outer(torch.arange(rows, dtype=torch.float32), 1 / 10000**steps).repeat(1, 2)
    return angles.cos(), angles.sin()


def _turned(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    low, high = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-high, low), dim=-1) * sin


def _gloo(task: Task) -> Any:
    """A group over the addresses of the ranks."""
    torch_distributed: Any = dist  # it exports more than its stubs say
    store = torch_distributed.TCPStore(task.addresses[0], PORT, len(task.addresses), is_master=task.rank == 0)
    gloo = torch_distributed.ProcessGroupGloo
    options = gloo._Options()
    options._devices = [gloo.create_device(hostname=task.addresses[task.rank])]
    return gloo(store, task.rank, len(task.addresses), options)


def main(arguments: Sequence[str]) -> int:
    torch.set_num_threads(1)
    fields = json.loads(arguments[0])
    rounds = fields.pop("rounds")
    rank = Rank(Task(**fields | {"addresses": tuple(fields["addresses"])}))
    with torch.inference_mode():
        times = rank.times(rounds)
    if rank.task.rank == 0:
        sys.stdout.write(json.dumps(times))
        sys.stdout.flush()
    if rank.group is not None:
        rank.group.barrier().wait()  # rank 0 has the store: it must end last
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
