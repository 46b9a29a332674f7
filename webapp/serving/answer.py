"""One request from its command to its last token: refused, accepted, pieces of text, ended."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from channels.db import database_sync_to_async
from django.contrib.auth.models import User

from engine.domain.errors import EdgeLoomError, SpecError
from webapp.base.errors import TooMany, Unavailable
from webapp.runs.models import Run
from webapp.serving import served
from webapp.serving.feed import Item, listening

ACCEPT_WALL_S = 30.0
"""A run that has not said whether it takes a request after so long is not there."""
BUSY_RETRY_S = 5.0

Finish = Literal["stop", "length"]


class Interrupted(EdgeLoomError):
    """The answer was begun or waited for, and will not be completed."""


@dataclass
class Answer:
    """What is known of an answer so far; `finish` when it is complete."""

    prompt_tokens: int = 0
    new_tokens: int = 0
    completion_tokens: int = 0
    finish: Finish | None = None


@dataclass
class Cut:
    """Cuts a text at the first of some stop texts. It holds back what may be the beginning of one."""

    stops: Sequence[str]
    held: str = ""
    found: bool = False
    longest: int = field(init=False)

    def __post_init__(self) -> None:
        self.longest = max((len(stop) for stop in self.stops), default=0)

    def add(self, text: str) -> str:
        """What can be shown of the text so far and was not before."""
        if self.found:
            return ""
        self.held += text
        places = [place for stop in self.stops if (place := self.held.find(stop)) >= 0]
        if places:
            self.found = True
            shown, self.held = self.held[: min(places)], ""
            return shown
        keep = next(
            (
                size
                for size in range(min(self.longest - 1, len(self.held)), 0, -1)
                if any(stop.startswith(self.held[-size:]) for stop in self.stops)
            ),
            0,
        )
        shown = self.held[: len(self.held) - keep]
        self.held = self.held[len(shown) :]
        return shown

    def rest(self) -> str:
        """What was held back and was no stop text."""
        rest, self.held = self.held, ""
        return rest


async def pieces(
    run: Run, user: User, command: dict[str, Any], stops: Sequence[str], answer: Answer
) -> AsyncGenerator[str]:
    """Ask `run`, and yield the answer's text in pieces: first "" when the request is taken. Fills `answer`.

    A caller that goes away cancels the request. Raises `SpecError`, `TooMany` or `Unavailable` if it is not
    taken, and `Interrupted` if it ends without an answer.
    """
    name = served.new_id(user)
    cut, open_ = Cut(stops), True
    async with listening(run.pk, name) as items:
        await _send(run, user, {"kind": "ask", "id": name, **command})
        try:
            _accept(await _first(items), answer)
            yield ""
            while answer.finish is None:
                item = await items.get()
                if item["type"] == "over":
                    open_ = False
                    raise Interrupted(item["reason"])
                match item["name"]:
                    case "token_emitted":
                        answer.completion_tokens += 1
                        if shown := cut.add(str(item["facts"].get("text") or "")):
                            yield shown
                        if cut.found:
                            answer.finish = "stop"
                    case "request_finished":
                        open_ = False
                        answer.finish = "length" if answer.completion_tokens == answer.new_tokens else "stop"
                    case "request_cancelled":
                        open_ = False
                        raise Interrupted(item["facts"].get("reason") or "The request was cancelled.")
            if rest := cut.rest():
                yield rest
        finally:
            if open_:
                await asyncio.shield(
                    _send(run, user, {"kind": "withdraw", "id": name, "answered": cut.found})
                )


async def _send(run: Run, user: User, command: dict[str, Any]) -> None:
    await database_sync_to_async(served.send)(run, user, command)


async def _first(items: asyncio.Queue[Item]) -> Item:
    try:
        return await asyncio.wait_for(items.get(), ACCEPT_WALL_S)
    except TimeoutError:
        raise Unavailable(f"The run has not answered for {ACCEPT_WALL_S:g} s: is its worker there?") from None


def _accept(item: Item, answer: Answer) -> None:
    if item["type"] == "over":
        raise Interrupted(item["reason"])
    if item["type"] == "request_refused":
        if item["busy"]:
            raise TooMany(item["reason"], BUSY_RETRY_S)
        field = item.get("field", "")
        raise SpecError(item["reason"], [(field, item["reason"])] if field else [])
    answer.prompt_tokens = item["facts"]["prompt_tokens"]
    answer.new_tokens = item["facts"]["new_tokens"]
