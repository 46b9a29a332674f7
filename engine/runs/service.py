"""The requests that people send to a run of an open workload: accepted or refused, cancelled, counted, ended.

The supervisor hands over the commands `ask`, `withdraw` and `end_service`, and every mark. Times are wall
seconds of the run's clock where their names say so.
"""

from __future__ import annotations

from typing import Any

from engine.domain.errors import EdgeLoomError, SpecError
from engine.domain.events import RequestRefused
from engine.domain.sampling import Sampling
from engine.domain.scenario import LiveCommand
from engine.domain.spec import RunSpec
from engine.domain.trace import Mark, Span
from engine.domain.units import human_s
from engine.domain.workload import Request
from engine.models.inputs.chat import chat_tokens, has_template, load_renderer
from engine.models.inputs.text import encode, stop_tokens
from engine.runs.active_run import ActiveRun
from engine.runs.pool import DevicePool

MOST_CHARS_PER_TOKEN = 32
"""A text of more characters than this for each token that fits is refused before it is tokenised."""

COMMANDS = ("ask", "withdraw", "end_service")

SAMPLED_BY: tuple[str, ...] = ("temperature", "top_p", "top_k")
"""Fields of the workload that a request may set for itself."""

SHARE = 3
"""One person may wait for at most so many times the answers for which there is still room in the queue
(dynamic thresholds: Choudhury and Hahne, IEEE/ACM Transactions on Networking 6(2), 1998, equation 1). So one
alone gets three quarters of it, and two get three sevenths each.
"""


class Busy(SpecError):
    """The service is too busy for the request now; it may be sent again later."""


class Service:
    """Does nothing for a workload whose requests are known before the run."""

    def __init__(self, run: ActiveRun, pool: DevicePool):
        self.run, self.pool = run, pool
        self.workload = run.spec.workload
        if self.workload.is_open and has_template(run.spec.weights):
            load_renderer()  # not at the first request, which would wait seconds for it
        self.began_wall_s: float | None = None
        self.busy_wall_s = 0.0
        self.ids: dict[str, int] = {}
        self.open: set[int] = set()
        self.unheeded: dict[int, dict[str, Any]] = {}  # withdrawn, and the source has not said so yet
        self.closing = ""

    def handle(self, command: LiveCommand) -> None:
        """One of `COMMANDS`. A request that cannot be taken becomes an event with the reason."""
        match command["kind"]:
            case "ask":
                try:
                    self._ask(command)
                except (EdgeLoomError, ValueError) as error:
                    name, busy = str(command.get("id", ""))[:100], isinstance(error, Busy)
                    field = error.fields[0][0] if isinstance(error, SpecError) and error.fields else ""
                    self.run.emit(RequestRefused(id=name, reason=str(error), busy=busy, field=field))
            case "withdraw":
                self._withdraw(str(command.get("id", "")), str(command.get("by", "")), command)
            case _:
                by = command.get("by")
                self._close(f"The service was ended by {by}." if by else "The service was ended.")

    def note(self, item: Span | Mark) -> None:
        """Follow the requests through the marks of the source."""
        if not isinstance(item, Mark) or not self.workload.is_open:
            return
        if item.name in ("request_finished", "request_cancelled"):
            self.open.discard(item.facts["request"])
            self.unheeded.pop(item.facts["request"], None)
            self.busy_wall_s = self.run.clock()

    def repeat(self) -> None:
        """Repeat what the programs that were halted for a new plan may have missed."""
        for message in self.unheeded.values():
            self._send(**message)
        if self.closing:
            self._send(type="close", reason=self.closing)

    def check(self) -> None:
        """End the service at one of its limits."""
        work, now_s = self.workload, self.run.clock()
        if not work.is_open or self.closing:
            return
        if self.began_wall_s is None:
            self.began_wall_s = self.busy_wall_s = now_s
        if now_s - self.began_wall_s > work.serve_wall_s:
            self._close(f"The service ended after {human_s(work.serve_wall_s)}, its limit.")
        elif not self.open and len(self.run.requests) >= work.requests:
            self._close(f"The service ended at its limit of requests, {work.requests}.")
        elif not self.open and now_s - self.busy_wall_s > work.idle_wall_s:
            self._close(f"The service ended because nobody asked for {human_s(work.idle_wall_s)}.")

    def _ask(self, command: LiveCommand) -> None:
        """Take a request, or raise `SpecError` if it cannot be taken."""
        name = command["id"]
        new_tokens = int(command.get("new_tokens") or self.workload.new_tokens)
        self._check_taken(name, new_tokens)
        person = str(command.get("by", ""))
        self._check_share(person)
        try:
            tokens = self._tokens(command)
        except SpecError as error:
            raise SpecError(str(error), [("prompt", str(error))]) from error
        index, spec = len(self.run.requests), self.run.spec
        request = Request(
            index=index,
            tokens=tokens,
            new_tokens=new_tokens,
            arrival_s=self.run.now_s,
            stop_tokens=stop_tokens(spec.weights) if command.get("stops", True) else (),
            person=person,
            sampling=self._sampling(command.get("sampling") or {}, index),
        )
        self.run.requests += (request,)
        self.ids[name] = index
        self.open.add(index)
        facts = {
            "request": index,
            "id": name,
            "by": person,
            "prompt_tokens": len(tokens),
            "new_tokens": new_tokens,
            "text": str(command.get("text") or "")[:SHOWN_CHARS],
        }
        self.run.record(Mark(self.run.now_s, "request_accepted", facts=facts))
        self._send(type="ask", request=request.model_dump(mode="json"))

    def _check_taken(self, name: str, new_tokens: int) -> None:
        """Check that a request of so many tokens is taken now; raises `SpecError`."""
        work = self.workload
        if not work.is_open:
            raise SpecError(f"This run has a fixed workload ({work.pattern}) and takes no requests.")
        if self.closing:
            raise SpecError(f"No more requests are taken: {self.closing}")
        if not isinstance(name, str) or not name or name in self.ids:
            raise SpecError(f"id is {name!r}, expected a text that no other request has.")
        if len(self.run.requests) >= work.requests:
            raise SpecError(f"All requests that this run takes ({work.requests}) have been sent.")
        if len(self.open) >= work.queue_limit:
            raise Busy(
                f"As many requests wait for their answers as may ({work.queue_limit}): try again later."
            )
        if not 0 < new_tokens <= work.new_tokens:
            sentence = f"{new_tokens} new tokens are asked for, expected 1 to {work.new_tokens} in this run."
            raise SpecError(sentence, [("new_tokens", sentence)])

    def _check_share(self, person: str) -> None:
        """Check that `person` leaves others room in the queue; raises `Busy`."""
        own = sum(1 for index in self.open if self.run.requests[index].person == person)
        room = self.workload.queue_limit - len(self.open)
        if own >= SHARE * room:
            raise Busy(
                f"{own} of your requests wait for their answers, and the last {room} of "
                f"{self.workload.queue_limit} places are for other people: try again later."
            )

    def _tokens(self, command: LiveCommand) -> tuple[int, ...]:
        """The ids of a prompt that the run takes; raises `SpecError`."""
        most = self.workload.prompt_tokens or 0
        tokens = self._read(command, most)
        if len(tokens) > most:
            raise SpecError(
                f"The prompt has {len(tokens)} tokens, and this run takes up to {most}: shorten it."
            )
        return tokens

    def _read(self, command: LiveCommand, most: int) -> tuple[int, ...]:
        """The ids of a prompt: given, or those of a text or of a conversation with a chat template. More than
        `most` need not be read.
        """
        spec = self.run.spec
        tokens, messages = command.get("tokens"), command.get("messages")
        if isinstance(tokens, list):
            ids = [token for token in tokens[: most + 1] if isinstance(token, int)]
            if not ids or len(ids) != len(tokens[: most + 1]):
                raise SpecError("tokens: expected whole numbers, at least one.")
            if min(ids) < 0 or max(ids) >= spec.model.num_text_tokens:
                raise SpecError(f"tokens: expected 0 to {spec.model.num_text_tokens - 1}.")
            return tuple(ids)
        text = str(command.get("text") or "")
        if len(text) > most * MOST_CHARS_PER_TOKEN:
            raise SpecError(
                f"The prompt has {len(text):,} characters, and this run takes up to {most} tokens: shorten "
                "it."
            )
        if messages:
            written = chat_tokens(spec.model, spec.weights, messages, most * MOST_CHARS_PER_TOKEN)
            if written is not None:
                return written
        return encode(spec.model, spec.weights, text)

    def _sampling(self, said: dict[str, Any], index: int) -> Sampling | None:
        """How a request's tokens are drawn: as it says, else as the run does. Two requests with one prompt
        and one `seed` of their own get one answer.
        """
        work = self.workload.model_copy(update={name: said[name] for name in SAMPLED_BY if name in said})
        return work.sampling(said["seed"], 0) if "seed" in said else work.sampling(self.run.spec.seed, index)

    def _withdraw(self, name: str, by: str, command: LiveCommand) -> None:
        """Cancel a request, or count its answer so far as the whole one. Of an unknown one, nothing."""
        index = self.ids.get(name)
        if index is None or index not in self.open:
            return
        message = {
            "type": "withdraw",
            "request": index,
            "answered": bool(command.get("answered")),
            "reason": f"Cancelled by {by}." if by else "Cancelled.",
        }
        self.unheeded[index] = message
        self._send(**message)

    def _close(self, reason: str) -> None:
        if self.closing:
            return
        self.closing = reason
        self.run.record(Mark(self.run.now_s, "service_ended", facts={"reason": reason}))
        self._send(type="close", reason=reason)

    def _send(self, **message: Any) -> None:
        self.pool.send(self.run.cluster.source_rank, **message)


SHOWN_CHARS = 2000
"""Characters of a prompt's text that the events keep."""


def recorded(
    spec: RunSpec, requests: tuple[Request, ...], trace: list[Span | Mark]
) -> tuple[RunSpec, tuple[Request, ...]]:
    """The spec of an open run with what it has answered as its trace, and these requests with the number of
    tokens that each got. Those that got none are left out.
    """
    emitted: dict[int, int] = {}
    for item in trace:
        if isinstance(item, Mark) and item.name == "token_emitted":
            emitted[item.facts["request"]] = emitted.get(item.facts["request"], 0) + 1
    kept = tuple(
        request.model_copy(update={"new_tokens": emitted[request.index], "stop_tokens": ()})
        for request in requests
        if request.index in emitted
    )
    rows = [
        {
            "at_s": request.arrival_s,
            "prompt_tokens": len(request.tokens),
            "new_tokens": request.new_tokens,
            "tokens": request.tokens,
            "person": request.person,
            "sampling": request.sampling,
        }
        for request in kept
    ]
    workload = type(spec.workload).model_validate(spec.workload.model_dump() | {"trace": rows})
    return spec.model_copy(update={"workload": workload}), kept
