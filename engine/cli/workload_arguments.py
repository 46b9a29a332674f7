"""Parse the arguments that describe a workload: prompts, numbers of tokens, and when requests arrive."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any, get_args

from engine.domain.errors import SpecError
from engine.domain.model import ModelSpec
from engine.domain.spec import WeightsRef
from engine.domain.workload import Pattern, SchedulerName
from engine.models.inputs.pictures import encoded
from engine.recorded.prompts import read_prompts, traced
from engine.recorded.requests import read_requests

DEFAULT_TOKENS = 16

GIVEN = (
    "temperature",
    "top_p",
    "top_k",
    "kv_cache",
    "assumed_tokens",
    "rate_per_s",
    "users",
    "think_s",
    "max_batch",
    "scheduler",
    "chunk_tokens",
    "slo_first_token_s",
    "slo_per_token_s",
)


def add_workload_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of a workload."""
    prompt = parser.add_mutually_exclusive_group()
    prompt.add_argument("--prompt", metavar="TEXT", help="the text to continue or encode")
    parser.add_argument(
        "--chat",
        action=argparse.BooleanOptionalAction,
        help="whether the prompt is a message, written by the model's chat template (default: if it has one)",
    )
    prompt.add_argument("--prompt-tokens", type=int, metavar="N", help="random prompt of N tokens (16)")
    prompt.add_argument(
        "--prompts",
        metavar="FILE",
        help="JSONL, one request a line: prompt and, if known, new_tokens and at_s; FILE,requests=N takes "
        "the first; they arrive at at_s, or with --rate at random, or all at time 0",
    )
    parser.add_argument("--image", metavar="FILE", help="PNG or JPEG for a model that sees (random)")
    parser.add_argument(
        "--new-tokens",
        type=int,
        metavar="N",
        help="tokens to generate (default 16, and 0 for encoders)",
    )
    parser.add_argument(
        "--temperature",
        type=float,
        metavar="T",
        help="draw tokens at random from softmax(logits / T), as --seed says (0: the most likely ones)",
    )
    parser.add_argument(
        "--top-p",
        type=float,
        metavar="P",
        help="draw among the fewest most likely tokens that have probability P together (1: all)",
    )
    parser.add_argument("--top-k", type=int, metavar="K", help="draw among the K most likely tokens (0: all)")
    parser.add_argument(
        "--kv-cache",
        action=argparse.BooleanOptionalAction,
        help="whether devices keep keys and values from token to token; else every token is a pass over all "
        "tokens so far, as with use_cache=False of transformers (default: they do)",
    )
    parser.add_argument(
        "--assumed-tokens",
        type=int,
        metavar="N",
        help="plan for prompts and answers of N tokens together, as where nobody knows how long answers "
        "become (plans know it)",
    )
    parser.add_argument("--requests", type=int, metavar="N", help="how many requests (1)")
    parser.add_argument(
        "--pattern",
        choices=[pattern for pattern in get_args(Pattern) if pattern != "serve"],
        help="when requests arrive: one after another (sporadic, the default), all at time 0 (bursty), at "
        "random (poisson, needs --rate), as in a file (trace, needs --trace) or from users that each wait "
        "for their answer (users, needs --users)",
    )
    parser.add_argument(
        "--rate", type=float, metavar="R", dest="rate_per_s", help="requests a virtual second, on average"
    )
    parser.add_argument(
        "--trace",
        metavar="FILE[,OPTION=…]",
        help="CSV of at_s, prompt_tokens and new_tokens, one line per request, or a trace of Azure or "
        "BurstGPT; options: requests, from_s, until_s, stretch, most_prompt_tokens, most_new_tokens",
    )
    parser.add_argument("--users", type=int, metavar="N", help="users who send one request after another")
    parser.add_argument(
        "--think", type=float, metavar="S", dest="think_s", help="from an answer to the user's next request"
    )
    parser.add_argument(
        "--max-batch",
        type=int,
        metavar="N",
        help="requests in work at once, at most (1); with --scheduler fcfs they are of one length",
    )
    parser.add_argument(
        "--scheduler",
        choices=get_args(SchedulerName),
        help="who is admitted when: one batch after the other (fcfs, the default), between two tokens of "
        "others (continuous), the same with prompts in parts (chunked), prompts on one device "
        "while another computes tokens (disaggregated), or what the method allows (auto)",
    )
    parser.add_argument(
        "--chunk-tokens", type=int, metavar="N", help="rows of a step at most, with --scheduler chunked (64)"
    )
    parser.add_argument(
        "--slo-first-token",
        type=float,
        metavar="S",
        dest="slo_first_token_s",
        help="objective for goodput: the first token after so many seconds",
    )
    parser.add_argument(
        "--slo-per-token",
        type=float,
        metavar="S",
        dest="slo_per_token_s",
        help="objective for goodput: the mean time of a later token",
    )
    parser.add_argument(
        "--token-limit",
        type=float,
        metavar="S",
        dest="token_limit_s",
        help="end the run when a token takes longer than S virtual seconds (no limit)",
    )


def workload_fields(args: argparse.Namespace, model: ModelSpec, weights: WeightsRef) -> dict[str, Any]:
    """What the arguments say of the workload; a pattern follows from the argument that it needs."""
    found: dict[str, Any] = {name: value for name in GIVEN if (value := getattr(args, name)) is not None}
    found |= {
        "prompt": args.prompt,
        "chat": args.chat,
        "prompt_tokens": args.prompt_tokens,
        "image": _image(model, args.image),
        "token_limit_s": args.token_limit_s,
    }
    implied = (
        "poisson" if args.rate_per_s else "trace" if args.trace else "users" if args.users else "sporadic"
    )
    found["pattern"] = args.pattern or implied
    if args.prompts:
        return found | _fields_of_prompts(args, model, weights)
    if args.trace:
        recorded = read_requests(args.trace)
        found["trace"] = recorded.requests
        for note in recorded.notes:
            sys.stderr.write(f"--trace {args.trace}: {note}\n")
        sizes = {"new_tokens": args.new_tokens, "requests": args.requests}
        return found | {name: value for name, value in sizes.items() if value is not None}
    if args.prompt is None and args.prompt_tokens is None and model.reads_text:
        found["prompt_tokens"] = DEFAULT_TOKENS
    generates = DEFAULT_TOKENS if model.has_head else 0
    found["new_tokens"] = args.new_tokens if args.new_tokens is not None else generates
    found["requests"] = args.requests if args.requests is not None else 1
    return found


def _fields_of_prompts(args: argparse.Namespace, model: ModelSpec, weights: WeightsRef) -> dict[str, Any]:
    """The prompts of a file as a trace; raises `SpecError`."""
    where = f"--prompts {args.prompts}"
    for name in ("trace", "users", "requests"):
        if getattr(args, name) is not None:
            raise SpecError(f"{where}: its lines are the requests: leave out --{name}.")
    if args.pattern not in (None, "trace", "poisson"):
        raise SpecError(f"{where}: its lines arrive on their own: leave out --pattern {args.pattern}.")
    tokens = args.new_tokens or DEFAULT_TOKENS
    rows = traced(read_prompts(args.prompts), model, weights, tokens, args.rate_per_s, args.seed)
    return {"trace": rows, "pattern": "trace", "rate_per_s": None, "new_tokens": None}


def _image(model: ModelSpec, file: str | None) -> str | None:
    """The picture in `file`, encoded as a spec stores it."""
    if file is None:
        return None
    if model.vision is None:
        raise SpecError(f"--image {file}: {model.name} sees no pictures: choose a model that does.")
    try:
        data = Path(file).read_bytes()
    except OSError as error:
        raise SpecError(f"--image {file}: cannot be read: {error.strerror}.") from error
    return encoded(model.vision, data, f"--image {file}")
