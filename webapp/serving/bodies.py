"""The bodies of /v1 requests: what is understood, and what is refused because it would change the answer."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from engine.domain.complaints import field_path
from engine.domain.errors import SpecError
from engine.domain.sampling import MOST_TEMPERATURE, SEEDS
from webapp.base import budgets
from webapp.base.bodies import checked_json
from webapp.serving.neutral import check_neutral, is_greedy, refusal, shown

MOST_MESSAGES = 1000
MOST_TOKENS = 1_000_000_000
MOST_STOPS = 16
MOST_STOP_CHARS = 200
DEFAULT_TOKENS = 16
"""The tokens of a completion by OpenAI's default."""
_TOKENS = f"a whole number from 1 to {MOST_TOKENS:,}"


def _stops(given: Any) -> tuple[str, ...]:
    stops = [] if given is None else [given] if isinstance(given, str) else given
    if not isinstance(stops, list) or not all(isinstance(stop, str) for stop in stops):
        raise ValueError(f"{shown(given)} is given, expected a text or up to {MOST_STOPS} texts")
    if len(stops) > MOST_STOPS:
        raise ValueError(f"{len(stops)} texts are given, and an answer ends at one of {MOST_STOPS} at most")
    if wrong := [stop for stop in stops if not 0 < len(stop) <= MOST_STOP_CHARS]:
        raise ValueError(f"{shown(wrong[0])} has {len(wrong[0])} characters, expected 1 to {MOST_STOP_CHARS}")
    return tuple(stops)


def _count(given: Any) -> Any:
    """Not true or false, which are numbers in Python."""
    if isinstance(given, bool):
        raise ValueError(f"{shown(given)} is given, expected {_TOKENS}")
    return given


def _prompt(given: Any) -> str | list[int]:
    """A text or token ids; a list may hold one of them."""
    if isinstance(given, list) and given and isinstance(given[0], str | list):
        if len(given) > 1:
            raise ValueError(f"{len(given)} prompts are given, expected one: send a request for each")
        given = given[0]
    if isinstance(given, str) or (
        isinstance(given, list) and given and all(type(one) is int for one in given)
    ):
        return given
    raise ValueError(f"{shown(given)} is given, expected a text or a list of token ids")


def _no_calls(given: Any) -> None:
    if given:
        raise ValueError("a tool is called, but a run knows no tools: leave the message out")


def _content(given: Any) -> str:
    """The text of a message: as it is, or in parts."""
    if isinstance(given, str):
        return given
    if not isinstance(given, list):
        raise ValueError(f"{shown(given)} is given, expected a text or a list of parts with texts")
    for number, part in enumerate(given):
        kind = part.get("type") if isinstance(part, dict) else part
        if not isinstance(part, dict) or kind != "text" or not isinstance(part.get("text"), str):
            expected = "an object of the type text with its text"
            raise ValueError(f"part {number} is {shown(kind)}, expected {expected}: a run reads text alone")
    return "".join(part["text"] for part in given)


_YES = "true or false"
Tokens = Annotated[int | None, BeforeValidator(_count), Field(gt=0, le=MOST_TOKENS, description=_TOKENS)]


class StreamOptions(BaseModel):
    include_usage: bool | None = Field(False, description=_YES)


class _Asked(BaseModel):
    """What both kinds of request have. `ignore_eos` is of vLLM and its load generators: the answer goes on
    after a token that ends a text. How tokens are drawn is the run's way, where a request does not say it.
    """

    prompt_field: ClassVar[str]

    model: str = Field(max_length=200, description="the name or the number of a run that serves")
    max_tokens: Tokens = None
    max_completion_tokens: Tokens = None
    stream: bool | None = Field(default=False, description=_YES)
    stream_options: StreamOptions | None = Field(default=None, description="an object")
    stop: Annotated[tuple[str, ...], BeforeValidator(_stops)] = ()
    ignore_eos: bool | None = Field(default=False, description=_YES)
    temperature: float | None = Field(
        default=None,
        strict=True,
        ge=0,
        le=MOST_TEMPERATURE,
        description=f"a number from 0 to {MOST_TEMPERATURE:g}",
    )
    top_p: float | None = Field(
        default=None, strict=True, gt=0, le=1, description="a number above 0, and 1 at most"
    )
    top_k: int | None = Field(
        default=None, strict=True, ge=-1, lt=SEEDS, description="a whole number, and -1 or 0 for all tokens"
    )
    seed: int | None = Field(
        default=None, strict=True, ge=-SEEDS, lt=SEEDS, description="a whole number of 64 bits"
    )

    @property
    def sampling(self) -> dict[str, Any]:
        """What the request says of how its tokens are drawn: values of `Workload`'s fields, and a `seed`."""
        temperature = 0.0 if is_greedy(self.temperature) else self.temperature
        top_k = None if self.top_k is None else max(self.top_k, 0)
        said = {"temperature": temperature, "top_p": self.top_p, "top_k": top_k, "seed": self.seed}
        return {name: value for name, value in said.items() if value is not None}

    @property
    def new_tokens(self) -> int | None:
        """Tokens that are asked for; None: as many as the run allows."""
        return self.max_completion_tokens or self.max_tokens

    def named(self, error: SpecError) -> SpecError:
        """A run's refusal with the fields of this body to blame."""
        tokens = "max_completion_tokens" if self.max_completion_tokens else "max_tokens"
        names = {"prompt": self.prompt_field, "new_tokens": tokens}
        return SpecError(str(error), [(names.get(path, path), complaint) for path, complaint in error.fields])


class Completion(_Asked):
    """The body of /v1/completions."""

    prompt_field: ClassVar = "prompt"

    prompt: Annotated[str | list[int], BeforeValidator(_prompt)] = Field(
        description="a text or a list of token ids"
    )

    def prompt_of(self) -> dict[str, Any]:
        """The `text` or the `tokens` of a command. Raises `SpecError`."""
        if isinstance(self.prompt, str):
            _check_size(self.prompt, "prompt")
            return {"text": self.prompt}
        if len(self.prompt) > budgets.MAX_PROMPT_CHARS:
            raise refusal(
                "prompt", f"{len(self.prompt):,} tokens, and the limit is {budgets.MAX_PROMPT_CHARS:,}"
            )
        return {"tokens": self.prompt}

    def tokens_asked(self) -> int | None:
        return self.new_tokens or DEFAULT_TOKENS


class Message(BaseModel):
    """One turn of a chat. Clients send answers back as they got them, with fields that no run reads."""

    model_config = ConfigDict(extra="ignore")

    role: Literal["system", "developer", "user", "assistant"] = Field(
        description="system, developer, user or assistant"
    )
    content: Annotated[str, BeforeValidator(_content)] = Field(description="a text")
    tool_calls: Annotated[None, BeforeValidator(_no_calls)] = None
    function_call: Annotated[None, BeforeValidator(_no_calls)] = None

    @model_validator(mode="before")
    @classmethod
    def _an_empty_answer(cls, given: Any) -> Any:
        if isinstance(given, dict) and given.get("role") == "assistant" and given.get("content") is None:
            return given | {"content": ""}
        return given


class Chat(_Asked):
    """The body of /v1/chat/completions."""

    prompt_field: ClassVar = "messages"

    messages: list[Message] = Field(
        min_length=1,
        max_length=MOST_MESSAGES,
        description=f"a list of 1 to {MOST_MESSAGES} messages with role and content",
    )

    def prompt_of(self) -> dict[str, Any]:
        """The prompt of a chat; `text` is for models without a chat template, and what the live
        page shows.
        """
        text = chat_text(self.messages)
        _check_size(text, "messages")
        messages = [{"role": message.role, "content": message.content} for message in self.messages]
        return {"text": text, "messages": messages}

    def tokens_asked(self) -> int | None:
        return self.new_tokens


def chat_text(messages: list[Message]) -> str:
    """One user's message as it is: models here continue a text. Several messages as lines that begin with the
    role, and the assistant's turn at the end.
    """
    if len(messages) == 1 and messages[0].role == "user":
        return messages[0].content
    lines = [f"{message.role.capitalize()}: {message.content}" for message in messages]
    return "\n".join([*lines, "Assistant:"])


def _check_size(text: str, path: str) -> None:
    if len(text) > budgets.MAX_PROMPT_CHARS:
        raise refusal(path, f"{len(text):,} characters, and the limit is {budgets.MAX_PROMPT_CHARS:,}")


Body = TypeVar("Body", bound=_Asked)

EXPECTED = {
    name: field.description
    for kind in (Completion, Chat, Message, StreamOptions)
    for name, field in kind.model_fields.items()
}
"""What each field holds, in the words of a refusal."""


def parse(kind: type[Body], data: bytes) -> Body:
    """Read a body of OpenAI's API. Raises `SpecError` whose first field is the one to blame."""
    asked = checked_json(data)
    if not isinstance(asked, dict):
        raise SpecError("The body of the request is no JSON object, as OpenAI's API has it.")
    check_neutral(asked, frozenset(kind.model_fields))
    try:
        return kind.model_validate(asked)
    except ValidationError as error:
        raise _complaint(error) from error


def _complaint(error: ValidationError) -> SpecError:
    """What is wrong with the first wrong field, in words of our own."""
    first = error.errors(include_url=False)[0]
    path = field_path(first["loc"])
    if first["type"] == "value_error":
        return refusal(path, first["msg"].removeprefix("Value error, "))
    name = next((part for part in reversed(first["loc"]) if isinstance(part, str)), "")
    expected = EXPECTED.get(name) if isinstance(first["loc"][-1], str) else "an object"
    if first["type"] == "missing":
        return refusal(path, f"it is missing, expected {expected}")
    return refusal(path, f"{shown(first['input'])} is given, expected {expected}")
