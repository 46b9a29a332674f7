"""The bodies of /v1 requests: what is understood, and what is refused because it would change the answer."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from engine.domain.errors import SpecError
from engine.domain.values import field_path
from webapp.base import budgets

MOST_MESSAGES = 1000
MOST_STOPS = 4
MOST_STOP_CHARS = 200
DEFAULT_TOKENS = 16
"""The tokens of a completion by OpenAI's default."""

Stop = Annotated[str, Field(min_length=1, max_length=MOST_STOP_CHARS)]


class StreamOptions(BaseModel):
    model_config = ConfigDict(extra="ignore")

    include_usage: bool = False


class _Asked(BaseModel):
    """What both kinds of request have. `ignore_eos` is of vLLM and its load generators: the answer goes on
    after a token that ends a text.
    """

    model_config = ConfigDict(extra="forbid", strict=False)

    model: str = Field(max_length=200)
    max_tokens: int | None = Field(default=None, gt=0)
    max_completion_tokens: int | None = Field(default=None, gt=0)
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    stop: Stop | Annotated[list[Stop], Field(max_length=MOST_STOPS)] | None = None
    ignore_eos: bool = False
    n: int | None = 1
    temperature: float | None = None
    top_p: float | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    seed: int | None = None
    user: str | None = None
    metadata: dict[str, Any] | None = None

    @model_validator(mode="after")
    def _only_what_there_is(self) -> _Asked:
        """Refuse what asks for another choice than the most likely token, which is always taken."""
        wanted = {
            "n": (self.n, 1),
            "temperature": (self.temperature, 0),
            "presence_penalty": (self.presence_penalty, 0),
            "frequency_penalty": (self.frequency_penalty, 0),
            "top_p": (self.top_p, 1),
        }
        for name, (given, only) in wanted.items():
            if given is not None and given != only:
                raise ValueError(
                    f"{name} is {str(given)[:20]}, and a run always takes the most likely token, once: "
                    f"give {only} or leave it out"
                )
        return self

    @property
    def stops(self) -> tuple[str, ...]:
        return (self.stop,) if isinstance(self.stop, str) else tuple(self.stop or ())

    @property
    def new_tokens(self) -> int | None:
        """Tokens that are asked for; None: as many as the run allows."""
        return self.max_completion_tokens or self.max_tokens


class Completion(_Asked):
    """The body of /v1/completions. `prompt` is a text, or token ids; a list may hold one of them."""

    prompt: str | list[int] | list[str] | list[list[int]]
    echo: Literal[False] | None = False
    best_of: Literal[1] | None = 1
    logprobs: None = None
    suffix: None = None

    def prompt_of(self) -> dict[str, Any]:
        """The `text` or the `tokens` of a command. Raises `SpecError`."""
        prompt: Any = self.prompt
        if isinstance(prompt, list) and prompt and not isinstance(prompt[0], int):
            if len(prompt) > 1:
                raise SpecError("prompt: has several prompts, expected one.", [("prompt", "expected one")])
            prompt = prompt[0]
        if isinstance(prompt, str):
            _check_size(prompt, "prompt")
            return {"text": prompt}
        if len(prompt) > budgets.MAX_PROMPT_CHARS:
            raise SpecError("prompt: has too many tokens.", [("prompt", "too many tokens")])
        return {"tokens": prompt}

    def tokens_asked(self) -> int | None:
        return self.new_tokens or DEFAULT_TOKENS


class TextPart(BaseModel):
    model_config = ConfigDict(extra="forbid")

    type: Literal["text"]
    text: str


class Message(BaseModel):
    model_config = ConfigDict(extra="forbid")

    role: Literal["system", "developer", "user", "assistant"]
    content: str | list[TextPart]
    name: str | None = None

    @property
    def text(self) -> str:
        if isinstance(self.content, str):
            return self.content
        return "".join(part.text for part in self.content)


class Chat(_Asked):
    """The body of /v1/chat/completions."""

    messages: list[Message] = Field(min_length=1, max_length=MOST_MESSAGES)
    logprobs: Literal[False] | None = False
    tools: None = None
    response_format: None = None

    def prompt_of(self) -> dict[str, Any]:
        """The prompt of a chat; `text` is for models without a chat template, and what the live
        page shows.
        """
        text = chat_text(self.messages)
        _check_size(text, "messages")
        messages = [{"role": message.role, "content": message.text} for message in self.messages]
        return {"text": text, "messages": messages}

    def tokens_asked(self) -> int | None:
        return self.new_tokens


def chat_text(messages: list[Message]) -> str:
    """One user's message as it is: models here continue a text. Several messages as lines that begin with the
    role, and the assistant's turn at the end.
    """
    if len(messages) == 1 and messages[0].role == "user":
        return messages[0].text
    lines = [f"{message.role.capitalize()}: {message.text}" for message in messages]
    return "\n".join([*lines, "Assistant:"])


def _check_size(text: str, path: str) -> None:
    if len(text) > budgets.MAX_PROMPT_CHARS:
        sentence = f"{path}: {len(text):,} characters, and the limit is {budgets.MAX_PROMPT_CHARS:,}."
        raise SpecError(sentence, [(path, "too long")])


Body = TypeVar("Body", bound=_Asked)


def parse(kind: type[Body], data: bytes) -> Body:
    """Read a body of OpenAI's API. Raises `SpecError` whose first field is the one to blame."""
    try:
        return kind.model_validate_json(data)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        path = field_path(first["loc"])
        message = first["msg"].removeprefix("Value error, ")
        raise SpecError(f"{path}: {message}." if path else f"{message}.", [(path, message)]) from error
