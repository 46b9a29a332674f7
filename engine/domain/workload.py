"""The workload of a run: prompts, numbers of tokens, and when requests arrive."""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import Field, ValidationError, model_validator

from engine.domain.sampling import MOST_TEMPERATURE, SEEDS, Sampling
from engine.domain.values import Count, NonNegative, Positive, Value

SchedulerName = Literal["auto", "own", "fcfs", "continuous", "chunked", "disaggregated"]
Pattern = Literal["sporadic", "bursty", "poisson", "trace", "users", "serve"]

CHUNK_TOKENS = 64
LONGEST_SERVICE_S = 86_400.0
OF_SERVICE = {"scheduler": "auto", "max_batch": 4}
"""What a workload that serves does where it does not say it: nobody waits for whole answers of others."""
OF_PATTERN: dict[str, Pattern] = {"rate_per_s": "poisson", "trace": "trace", "users": "users"}
"""The field without which a pattern is not complete, and which no other pattern has (but see `serve`)."""


class TracedRequest(Value):
    """One line of a trace: when a request arrives, in virtual seconds, and how long it is.

    tokens: the ids of its prompt, where they are known; else the seed decides them. person: who
    sent it, where people take turns (serve). sampling: how its tokens are drawn, where that is not the
    workload's way; of a request that people sent (serve), None: they are the most likely ones.
    """

    at_s: NonNegative
    prompt_tokens: int = Field(gt=0)
    new_tokens: int = Field(gt=0)
    tokens: tuple[Count, ...] = Field(default=(), exclude_if=lambda tokens: not tokens)
    person: str = Field(default="", exclude_if=lambda person: not person)
    sampling: Sampling | None = Field(default=None, exclude_if=lambda sampling: sampling is None)

    @model_validator(mode="after")
    def _all_tokens(self) -> Self:
        if self.tokens and len(self.tokens) != self.prompt_tokens:
            raise ValueError(f"tokens: are {len(self.tokens)}, and prompt_tokens is {self.prompt_tokens}")
        return self


class Workload(Value):
    """The requests of a run: how many, how long, and when they come.

    There are `requests` prompts. Exactly one of `prompt` and `prompt_tokens` gives them, and none for a model
    that reads no text. They are of equal length but for a trace, where the two lengths are those of the
    longest.

    A vision model gets `image` with every request, or a random image with each.

    `pattern` says when they come:
    sporadic: one request at a time, the next arrives when the last is answered.
    bursty: all arrive at time 0 (LIME, section V: as many as there are devices).
    poisson: they arrive at random, `rate_per_s` a second on average, whether or not others are answered.
    trace: they arrive at the times of `trace`, in its order.
    users: each of `users` sends its next request `think_s` after the answer to its last (a closed loop).
    serve: people send requests while the run goes on, of up to `prompt_tokens` and `new_tokens`, until
    somebody ends it or a limit does (`requests`, `idle_wall_s`, `serve_wall_s`). At most `queue_limit` are
    without an answer at once, and one person leaves room for others. Afterwards `trace` has those that got
    tokens.

    With `assumed_tokens` plans know the prompt but not the answer (LIME, section IV-C): all are made for
    sequences of that length, and the run generates `new_tokens` as always.

    Without `kv_cache` no device keeps keys and values: every token is one more pass over the prompt and all
    tokens so far.

    With the last four patterns requests wait in a queue, first come first served; with `serve` people take
    turns. When the cluster is free it takes the first, and further ones that wait and are as long,
    `max_batch` together. Another `scheduler` admits them while others are answered; where nothing is said
    with `serve`, the one that the method allows (auto) and up to four together.
    Encoders take `new_tokens = 0` and return hidden states, classifiers the logits of their classes.

    Tokens are the most likely ones, or with a `temperature` drawn at random, as the run's seed says: of
    one request the same in every method, batch and order, and after a failure. What people send may say
    otherwise (serve).
    """

    prompt: str | None = None
    chat: bool | None = Field(
        default=None,
        exclude_if=lambda chat: chat is None,
        description="Whether the prompt is a message, written by the model's chat template; null: if it has "
        "one.",
    )
    prompt_tokens: int | None = Field(default=None, gt=0, description="Random prompt of this many tokens.")
    image: str | None = Field(default=None, description="PNG of the model's image size, in base64.")
    new_tokens: Count = 16
    temperature: NonNegative = Field(
        default=0.0,
        le=MOST_TEMPERATURE,
        exclude_if=lambda temperature: not temperature,
        description="Tokens are drawn at random from softmax(logits / temperature); 0: the most likely ones.",
    )
    top_p: float = Field(
        default=1.0,
        gt=0,
        le=1,
        exclude_if=lambda top_p: top_p == 1,
        description="Drawn among the fewest most likely tokens that have this probability together; 1: all.",
    )
    top_k: int = Field(
        default=0,
        ge=0,
        lt=SEEDS,
        exclude_if=lambda top_k: not top_k,
        description="Drawn among so many most likely tokens; 0: all.",
    )
    kv_cache: bool = Field(
        default=True,
        exclude_if=lambda kv_cache: kv_cache,
        description="Whether devices keep keys and values from token to token; false: every token is a pass "
        "over all tokens so far (use_cache=False of transformers).",
    )
    assumed_tokens: Count = Field(
        default=0,
        description="Length of a sequence, prompt and answer, for which every method plans because nobody "
        "knows how long answers become; 0: plans know it.",
    )
    requests: int = Field(default=1, gt=0)
    pattern: Pattern = "sporadic"
    rate_per_s: Positive | None = Field(default=None, description="Requests a virtual second (poisson).")
    trace: tuple[TracedRequest, ...] = Field(default=(), description="When requests arrive, and their size.")
    users: int | None = Field(default=None, gt=0, description="How many send one request after another.")
    think_s: NonNegative = Field(default=0.0, description="From an answer to the user's next request.")
    max_batch: int = Field(
        default=1, gt=0, description="Requests in work at once, at most (serve: 4, where nothing is said)."
    )
    scheduler: SchedulerName = Field(
        default="fcfs",
        description="Who is admitted when: fcfs answers one batch after the other; continuous lets requests "
        "join between two tokens; chunked also divides prompts, so that nobody's tokens wait for them; "
        "disaggregated computes prompts and tokens at the same time, on different devices; own is the "
        "method's own; auto is the method's own, or the one that lets requests join where the method's plan "
        "can, else fcfs (serve: auto).",
    )
    chunk_tokens: int = Field(default=CHUNK_TOKENS, gt=0, description="Rows of a step at most (chunked).")
    queue_limit: int = Field(default=64, gt=0, description="Requests without an answer, at most (serve).")
    idle_wall_s: Positive = Field(
        default=600.0,
        le=LONGEST_SERVICE_S,
        description="The run ends after so many wall seconds without a request (serve).",
    )
    serve_wall_s: Positive = Field(
        default=3600.0,
        le=LONGEST_SERVICE_S,
        description="The run ends after so many wall seconds in any case (serve).",
    )
    slo_first_token_s: Positive | None = Field(
        default=None, description="Objective: the first token so soon after the arrival."
    )
    slo_per_token_s: Positive | None = Field(
        default=None, description="Objective: the mean time of a later token at most this."
    )
    token_limit_s: Positive | None = Field(
        default=None,
        description="The run ends as out of time when a token takes longer, in virtual seconds (LIME: 40).",
    )

    @model_validator(mode="before")
    @classmethod
    def _sizes_of_trace(cls, data: Any) -> Any:
        """Take the number of requests and the longest lengths from the trace, where they are not given. A
        line that is wrong is complained of when the field is read.
        """
        given = data.get("trace") if isinstance(data, dict) else None
        if not isinstance(given, list | tuple) or not given or data.get("pattern") == "serve":
            return data
        try:
            rows = [
                row if isinstance(row, TracedRequest) else TracedRequest.model_validate(row) for row in given
            ]
        except ValidationError:
            return data
        sizes = {
            "requests": len(rows),
            "prompt_tokens": max(row.prompt_tokens for row in rows),
            "new_tokens": max(row.new_tokens for row in rows),
        }
        return sizes | {key: value for key, value in data.items() if value is not None or key not in sizes}

    @model_validator(mode="before")
    @classmethod
    def _of_service(cls, data: Any) -> Any:
        """What a workload that serves does where it does not say it."""
        if isinstance(data, dict) and data.get("pattern") == "serve":
            return OF_SERVICE | {
                key: value for key, value in data.items() if value is not None or key not in OF_SERVICE
            }
        return data

    @model_validator(mode="after")
    def _belongs_together(self) -> Self:
        for field, pattern in OF_PATTERN.items():
            if field == "trace" and self.is_open:
                continue
            if bool(getattr(self, field)) != (self.pattern == pattern):
                needs = "is missing for" if self.pattern == pattern else "is given, and this is not"
                raise ValueError(f"{field} {needs} the pattern {pattern}")
        if self.think_s and self.pattern != "users":
            raise ValueError("think_s is given, and this is not the pattern users")
        if self.max_batch > 1 and not self.is_queued:
            raise ValueError(
                f"max_batch is {self.max_batch}, and the pattern {self.pattern} has no queue: "
                "choose poisson, trace, users or serve"
            )
        if self.scheduler != "fcfs" and not (self.is_queued and self.new_tokens):
            raise ValueError(
                f"scheduler is {self.scheduler}: it needs requests that get tokens and arrive by the pattern "
                "poisson, trace, users or serve: else choose fcfs"
            )
        if self.chunk_tokens != CHUNK_TOKENS and self.scheduler not in ("chunked", "own"):
            raise ValueError("chunk_tokens is given, and only the scheduler chunked divides prompts")
        if not self.kv_cache and (self.scheduler != "fcfs" or not self.new_tokens):
            raise ValueError(
                "kv_cache is false: it needs new_tokens, and batches that are answered one after the other "
                "(scheduler fcfs)"
            )
        if self.is_open and (self.prompt_tokens is None or not self.new_tokens or self.image is not None):
            raise ValueError("serve: give the longest prompt_tokens and new_tokens, and no prompt or image")
        if self.temperature and not self.new_tokens:
            raise ValueError("temperature is given, and new_tokens is 0: no token is drawn")
        if not self.temperature and (self.top_k or self.top_p < 1):
            raise ValueError("top_k or top_p is given, and temperature is 0: give a temperature, or neither")
        if self.chat and self.prompt is None:
            raise ValueError("chat is given, and there is no prompt to write as a message")
        if self.trace:
            self._check_trace()
        return self

    def _check_trace(self) -> None:
        times = [row.at_s for row in self.trace]
        if times != sorted(times):
            raise ValueError("trace: the times are not in order")
        longest = (max(r.prompt_tokens for r in self.trace), max(r.new_tokens for r in self.trace))
        if self.is_open:
            return
        if (self.prompt_tokens, self.new_tokens) != longest or self.requests != len(self.trace):
            raise ValueError(
                f"trace: has {len(self.trace)} requests of up to {longest[0]} and {longest[1]} tokens: give "
                "the same or leave out requests, prompt_tokens and new_tokens"
            )

    @property
    def chunk_rows(self) -> int:
        """Rows of a step at most; 0: prompts are not divided."""
        return self.chunk_tokens if self.scheduler == "chunked" else 0

    def sampling(self, seed: int, request: int) -> Sampling | None:
        """How the tokens of `request` are drawn in a run with this seed, unless it says so itself; None: they
        are the most likely ones.
        """
        if not self.temperature:
            return None
        return Sampling(
            temperature=self.temperature,
            top_p=self.top_p,
            top_k=self.top_k,
            seed=seed % SEEDS,
            stream=request,
        )

    @property
    def drawn_words(self) -> str:
        """How tokens are drawn at random; empty where they are the most likely ones."""
        if not self.temperature:
            return ""
        top_p = f", top-p {self.top_p:g}" * (self.top_p < 1)
        top_k = f", top-k {self.top_k}" * (self.top_k > 0)
        return f"sampled at T={self.temperature:g}{top_p}{top_k}"

    def follows(self, request: int) -> int:
        """The request whose answer its user waits for before `request`; negative for a user's first."""
        return request - (self.users or 1)

    @property
    def is_queued(self) -> bool:
        """Whether requests may wait for others that came before."""
        return self.is_open or self.pattern in OF_PATTERN.values()

    @property
    def is_open(self) -> bool:
        """Whether people send the requests while the run goes on."""
        return self.pattern == "serve"

    @property
    def together(self) -> int:
        """The most requests that are in work at once."""
        if self.pattern == "bursty":
            return self.requests
        return min(self.max_batch, self.requests) if self.is_queued else 1


class Request(Value):
    """The token ids of one request. The last `emitted` of them were generated already: a request that goes on
    after a device failed starts with its prompt and all tokens generated so far.

    new_tokens: how many it gets in all, where that is not the workload's number. arrival_s: None if that
    depends on the answer to another one. stop_tokens: ids that complete the answer when they are emitted.
    person: who sent it, where people take turns. sampling: how its tokens are drawn; None: they are the most
    likely ones.
    """

    index: Count
    tokens: tuple[int, ...]
    emitted: Count = 0
    new_tokens: Count | None = None
    arrival_s: NonNegative | None = 0.0
    stop_tokens: tuple[int, ...] = ()
    person: str = ""
    sampling: Sampling | None = None
