"""When requests arrived and how long they were: our own CSV, Azure's LLM inference traces, and BurstGPT.

| format | columns |
| --- | --- |
| our own | at_s, prompt_tokens, new_tokens |
| Azure LLM inference (2023, 2024) | TIMESTAMP, ContextTokens, GeneratedTokens |
| BurstGPT | Timestamp (s), Request tokens, Response tokens, and others |

Times count from the first request that is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from pydantic import Field

from engine.domain.errors import SpecError
from engine.domain.values import NonNegative, Positive, Value
from engine.domain.workload import TracedRequest
from engine.recorded.files import (
    columns_of,
    moment_of,
    number_of,
    parse_name,
    parse_options,
    rows_of,
    text_of,
)

MAX_REQUESTS = 100_000


class RequestOptions(Value):
    """What a person may say of a file of requests.

    requests: how many are taken, the first of them. from_s, until_s: those that arrive in this part of the
    file. stretch: the factor by which all times become longer, as a small cluster is slower than a data
    centre. most_prompt_tokens, most_new_tokens: the length to which longer ones are cut.
    """

    requests: int | None = Field(default=None, gt=0)
    from_s: NonNegative = 0.0
    until_s: Positive | None = None
    stretch: Positive = 1.0
    most_prompt_tokens: int | None = Field(default=None, gt=0)
    most_new_tokens: int | None = Field(default=None, gt=0)


class Recorded(NamedTuple):
    """Requests in the order of their arrival, and what was done to them, as sentences."""

    requests: tuple[TracedRequest, ...]
    notes: tuple[str, ...]


class _Line(NamedTuple):
    number: int
    at_s: float
    prompt_tokens: int
    new_tokens: int


class _Format(NamedTuple):
    """Columns of the time, of the tokens in and of the tokens out; how a time is read; and whether the first
    request comes at time 0 and requests without an answer are left out, since they failed.
    """

    columns: tuple[str, str, str]
    time_of: Callable[[str, str], float]
    is_foreign: bool


FORMATS = (
    _Format(("at_s", "prompt_tokens", "new_tokens"), number_of, is_foreign=False),
    _Format(("TIMESTAMP", "ContextTokens", "GeneratedTokens"), moment_of, is_foreign=True),
    _Format(("Timestamp", "Request tokens", "Response tokens"), number_of, is_foreign=True),
)


def read_requests(name: str) -> Recorded:
    """The requests in `FILE,option=value`. Raises `SpecError` with the file and the line."""
    path, link, options = parse_name(name)
    if link:
        raise SpecError(f"{path}: requests arrive at no link: leave out @{link}.")
    return parse_requests(text_of(path, "the requests"), str(path), options)


def parse_requests(text: str, where: str, options: str = "") -> Recorded:
    """The requests in a table of any of the formats, told apart by its columns. Raises `SpecError`."""
    asked = parse_options(RequestOptions, options, where)
    have = columns_of(text)
    form = next((form for form in FORMATS if set(form.columns) <= set(have)), None)
    if form is None or (not form.is_foreign and len(have) != len(form.columns)):
        known = "; or ".join(", ".join(form.columns) for form in FORMATS)
        raise SpecError(f"{where}: columns are {', '.join(have)[:200]}, expected {known}.")
    lines = sorted(_lines(text, where, form), key=lambda line: line.at_s)
    answered = [line for line in lines if line.prompt_tokens and line.new_tokens]
    notes = []
    if len(answered) < len(lines):
        if not form.is_foreign:
            number = next(line.number for line in lines if not (line.prompt_tokens and line.new_tokens))
            raise SpecError(f"{where}, line {number}: expected at least one token in and one out.")
        notes.append(f"{len(lines) - len(answered)} of {len(lines)} requests had no tokens: left out.")
    start_s = lines[0].at_s if lines and form.is_foreign else 0.0
    taken = [line for line in answered if _is_in(line.at_s - start_s, asked)][: asked.requests]
    if not taken:
        raise SpecError(f"{where}: has no request in the asked part: expected at least one.")
    if len(taken) > MAX_REQUESTS:
        raise SpecError(
            f"{where}: has {len(taken):,} requests, expected at most {MAX_REQUESTS:,}: add requests=1000, or "
            "until_s."
        )
    start_s = taken[0].at_s if form.is_foreign else asked.from_s
    requests = tuple(
        TracedRequest(
            at_s=round((line.at_s - start_s) * asked.stretch, 9),
            prompt_tokens=min(line.prompt_tokens, asked.most_prompt_tokens or line.prompt_tokens),
            new_tokens=min(line.new_tokens, asked.most_new_tokens or line.new_tokens),
        )
        for line in taken
    )
    cut = sum(
        (one.prompt_tokens, one.new_tokens) != line[2:] for one, line in zip(requests, taken, strict=True)
    )
    if cut:
        notes.append(f"{cut} of {len(taken)} requests were longer: cut to the asked length.")
    return Recorded(requests, tuple(notes))


def _is_in(at_s: float, asked: RequestOptions) -> bool:
    return asked.from_s <= at_s and (asked.until_s is None or at_s < asked.until_s)


def _lines(text: str, where: str, form: _Format) -> Iterator[_Line]:
    when, tokens_in, tokens_out = form.columns
    for number, row in rows_of(text, where, form.columns):
        place = f"{where}, line {number}"
        sizes = (_whole(row[name], f"{place}, {name}") for name in (tokens_in, tokens_out))
        yield _Line(number, form.time_of(row[when], f"{place}, {when}"), *sizes)


def _whole(text: str, where: str) -> int:
    value = number_of(text, where)
    if value != int(value):
        raise SpecError(f"{where}: expected a whole number of tokens, got {text[:40]!r}.")
    return int(value)
