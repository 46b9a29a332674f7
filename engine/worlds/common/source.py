"""The source device: gives the strategy its prompts and takes its tokens, in both worlds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.domain.trace import Mark
from engine.domain.workload import Request
from engine.models.inputs.prompts import pixels_of
from engine.ops.tensors import Meta, Tensor
from engine.ops.vision import ImagePrompt, pixels_meta
from engine.program.queue import in_turn
from engine.program.strategy import Step
from engine.worlds.common.device import Device
from engine.worlds.common.programs import Handle

if TYPE_CHECKING:
    import torch

SHOWN_CLASSES = 5


class _Source:
    """The marks that the sources of both worlds emit, and when requests arrive."""

    def __init__(self, device: Device):
        self.device = device
        self.last_s: dict[int, float] = {}
        self.begun: set[int] = set()
        self.last_turn: dict[str, int] = {}
        self.finished_s: dict[int, float] = {}
        self.cancelled: set[int] = set()
        self.queue: list[Request] = []
        self.closed = False
        self._awaited: Handle | None = None

    def arrival_s(self, request: Request) -> float | None:
        """When `request` arrives; None while the answer that it follows is not complete."""
        if request.arrival_s is not None:
            return request.arrival_s
        workload = self.device.spec.workload
        answered_s = self.finished_s.get(workload.follows(request.index))
        return None if answered_s is None else answered_s + workload.think_s

    def open(self) -> None:
        self.queue, self._awaited, self.closed = [], None, False

    def expect_no_more(self) -> None:
        """Take note that the requests known before have arrived; whether others may come depends on the
        world.
        """

    def waiting(self) -> Sequence[Request]:
        return in_turn(self.queue, self.last_turn)

    def queue_change(self) -> Handle:
        if self._awaited is None:
            self._awaited = Handle("a request")
        return self._awaited

    def tell_change(self) -> None:
        self._tell(self.device.now_s)

    def has_ended(self, request: int) -> bool:
        return request in self.cancelled or request in self.finished_s

    def _tell(self, time_s: float) -> None:
        """Resume the program that waits for a change of the queue."""
        awaited, self._awaited = self._awaited, None
        if awaited is not None:
            self.device.finish_at(awaited, time_s)  # in a turn of its own, not within the program that tells

    def close(self, time_s: float, reason: str = "") -> None:
        """Take no more requests, and cancel those without an answer."""
        self.closed = True
        for request in sorted(self.last_s.keys() - self.finished_s.keys() - self.cancelled):
            self.cancel(request, time_s, reason)
        self._tell(time_s)

    def cancel(self, request: int, time_s: float, reason: str) -> None:
        """Give `request` no more tokens, unless it has ended. One that waits leaves the queue."""
        if request not in self.last_s or self.has_ended(request):
            return
        self.cancelled.add(request)
        self.queue = [other for other in self.queue if other.index != request]
        facts = {"request": request, "reason": reason}
        self.device.emit(Mark(time_s, "request_cancelled", self.device.device.name, facts))

    def arrive(self, requests: Sequence[Request]) -> None:
        for request in requests:
            if request.index not in self.last_s:
                known_s = self.arrival_s(request) if self.device.spec.workload.is_queued else None
                arrived_s = self.device.now_s if known_s is None else known_s
                self.last_s[request.index] = arrived_s
                self.device.emit(
                    Mark(arrived_s, "request_arrived", self.device.device.name, {"request": request.index})
                )

    def enqueue(self, requests: Sequence[Request], time_s: float) -> None:
        known = {request.index for request in self.queue}
        self.queue += [
            request
            for request in requests
            if request.index not in known and not self.has_ended(request.index)
        ]
        self.arrive(requests)
        self._tell(time_s)

    def begin(self, requests: Sequence[Request]) -> None:
        """Mark requests as arrived and as begun, once each."""
        self.arrive(requests)
        for request in requests:
            if request.index not in self.begun:
                self.begun.add(request.index)
                self.last_turn[request.person] = len(self.begun)
                self.device.mark("request_begun", request=request.index)
        if self.queue:
            taken = {request.index for request in requests}
            self.queue = [request for request in self.queue if request.index not in taken]

    def finish(self, request: int) -> None:
        if self.has_ended(request):
            return
        self.finished_s[request] = self.device.now_s
        self.device.mark("request_finished", request=request)

    def emit(self, step: Step, tokens: Sequence[int | None]) -> None:
        """Mark the new token of every sequence, with the time since the one before."""
        now_s = self.device.now_s
        for (request, index), token in zip(step.answered, tokens, strict=True):
            if self.has_ended(request):
                continue
            latency_s, self.last_s[request] = now_s - self.last_s[request], now_s
            self.device.mark("token_emitted", request=request, index=index, token=token, latency_s=latency_s)


class SimulatedSource(_Source):
    """The source on shapes: it counts tokens without computing their ids."""

    def expect_no_more(self) -> None:
        """Close the queue: nobody sends further requests to the simulated world."""
        self.close(self.device.now_s)

    def close(self, time_s: float, reason: str = "") -> None:
        """Take no more requests; those in the queue are still answered."""
        self.closed = True
        self._tell(time_s)

    def prompt(self, requests: Sequence[Request]) -> Tensor:
        self.begin(requests)
        model, batch = self.device.model, len(requests)
        tokens = Meta((batch, len(requests[0].tokens)), "int64")
        if not model.vision:
            return tokens
        return ImagePrompt(pixels_meta(model, batch), tokens if model.reads_text else None)

    def next_tokens(self, step: Step, logits: Tensor) -> Tensor:
        self.device.result_came(step)
        answered = len(step.answered)
        self.emit(step, [None] * answered)
        if answered:
            self.device.occupy(self.device.device.token_s)
        return Meta((answered, 1), "int64")

    def tokens_of(self, step: Step) -> Tensor:
        return Meta((1, step.rows), "int64")

    def hidden(self, step: Step, hidden: Tensor) -> None:
        self.device.result_came(step)

    def nothing(self) -> Tensor:
        return Meta((0,), "int64")


class RealSource(_Source):
    """Chooses tokens. Keeps logits or hidden states for the comparison with the reference."""

    def __init__(self, device: Device):
        super().__init__(device)
        self.logits: dict[int, list[torch.Tensor]] = {}
        self.numbers: dict[int, list[int]] = {}  # of the tokens whose logits these are
        self.ids: dict[int, list[int]] = {}
        self.told: set[int] = set()  # requests of which ids came, or were drawn at random
        self.states: dict[int, torch.Tensor] = {}
        self.stop_tokens: dict[int, tuple[int, ...]] = {}
        self.texts: dict[int, list[int]] = {}

    def begin(self, requests: Sequence[Request]) -> None:
        super().begin(requests)
        self.stop_tokens |= {request.index: request.stop_tokens for request in requests}
        self.texts |= {request.index: list(request.tokens) for request in requests}

    def tokens_of(self, step: Step) -> Tensor:
        import torch

        spans = [self.texts[part.requests[0]][part.start : part.start + part.rows] for part in step.each]
        return torch.tensor([[token for span in spans for token in span]], dtype=torch.int64)

    def handle(self, message: dict[str, Any], time_s: float) -> None:
        """Act on a message of the supervisor about an open workload, at virtual time `time_s`."""
        match message["type"]:
            case "ask":
                self.enqueue([Request.model_validate(message["request"])], time_s)
            case "withdraw" if message["answered"]:
                self._complete(message["request"], time_s)
            case "withdraw":
                self.cancel(message["request"], time_s, message["reason"])
            case "close":
                self.close(time_s, message["reason"])

    def _complete(self, request: int, time_s: float) -> None:
        """End the answer of `request` with the tokens so far."""
        if request in self.last_s and not self.has_ended(request):
            self.finished_s[request] = time_s
            facts = {"request": request}
            self.device.emit(Mark(time_s, "request_finished", self.device.device.name, facts))
            self.queue = [other for other in self.queue if other.index != request]

    def prompt(self, requests: Sequence[Request]) -> Tensor:
        import torch

        self.begin(requests)
        tokens = torch.tensor([request.tokens for request in requests], dtype=torch.int64)
        spec = self.device.spec
        if not spec.model.vision:
            return tokens
        pictures = torch.stack([torch.from_numpy(pixels_of(spec, request.index)) for request in requests])
        pixels = pictures.to(getattr(torch, spec.model.dtype))
        return ImagePrompt(pixels, tokens if spec.model.reads_text else None)

    def next_tokens(self, step: Step, logits: Tensor) -> Tensor:
        """Token ids [B, 1] from logits [B, V], or from ids [B] that are chosen already."""
        chosen = not logits.is_floating_point()
        tokens = (logits if chosen else _choose(step, logits))[:, None]
        ids = tokens[:, 0].tolist()
        self.emit(step, ids)
        draws = step.draws
        for row, (request, index) in enumerate(step.answered):
            if self.has_ended(request):
                continue
            self.texts[request].append(ids[row])
            self.ids.setdefault(request, []).append(ids[row])
            if not chosen:
                self.logits.setdefault(request, []).append(logits[row])
                self.numbers.setdefault(request, []).append(index)
            if chosen or (draws and draws[row].sampling is not None):
                self.told.add(request)
            if ids[row] in self.stop_tokens.get(request, ()):
                self.finish(request)
        if ids:
            self.device.occupy(self.device.device.token_s)
        return tokens

    @property
    def chosen(self) -> dict[int, list[torch.Tensor]]:
        """The tokens of the requests whose logits at the source do not tell them."""
        import torch

        return {request: list(torch.tensor(self.ids[request])) for request in sorted(self.told)}

    def hidden(self, step: Step, hidden: Tensor) -> None:
        for row, request in enumerate(step.requests):
            self.states[request] = hidden[row].clone()
            if self.device.model.num_classes:
                self.classify(request, self.states[request])

    def nothing(self) -> Tensor:
        import torch

        return torch.empty(0, dtype=torch.int64)

    def classify(self, request: int, logits_C: torch.Tensor) -> None:
        """Mark the most likely classes, with their probabilities."""
        best = logits_C.float().softmax(dim=-1).topk(min(SHOWN_CLASSES, len(logits_C)))
        pairs = zip(best.indices.tolist(), best.values.tolist(), strict=True)
        classes = [{"index": index, "probability": probability} for index, probability in pairs]
        self.device.mark("classified", request=request, classes=classes)

    def save(self, path: Path) -> None:
        from safetensors.torch import save_file

        save_file(self.tensors(), path)

    def tensors(self) -> dict[str, torch.Tensor]:
        """The tensors that the source keeps, one per request: `logits.<i>` [new_tokens, V], `tokens.<i>`
        [new_tokens] where ids came or were drawn at random, or `hidden.<i>` [T, D], a classifier's [C]. Of a
        request of which ids came for some tokens only, as others in its steps were drawn at random, the
        logits are `piece.<i>.<token>.0`.
        """
        import torch

        tensors: dict[str, torch.Tensor] = {}
        for request, rows in self.logits.items():
            if len(rows) == len(self.ids[request]):
                tensors[f"logits.{request}"] = torch.stack(rows)
            else:
                numbered = zip(self.numbers[request], rows, strict=True)
                tensors |= {f"piece.{request}.{number}.0": row for number, row in numbered}
        tensors |= {f"tokens.{request}": torch.stack(ids) for request, ids in self.chosen.items()}
        tensors |= {f"hidden.{request}": states for request, states in self.states.items()}
        return {name: tensor.contiguous() for name, tensor in tensors.items()}


class CalculatedSource(RealSource):
    """Chooses tokens in virtual time, where nobody sends further requests."""

    expect_no_more = SimulatedSource.expect_no_more
    close = SimulatedSource.close


def _choose(step: Step, logits_BV: torch.Tensor) -> torch.Tensor:
    """Ids [B]."""
    from engine.ops.torch_kernels.tokens import draw_ids

    return draw_ids(logits_BV, step.draws) if step.draws else logits_BV.max(dim=-1).indices
