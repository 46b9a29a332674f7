"""Programs that ask a run that serves while others are answered: over /v1, with OpenAI's client."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from openai import OpenAI

LONG = 48
"""Tokens of the answer beside which all others are asked."""
SHORT = 6
PROMPT = "When a function is called, its"


class Answers(NamedTuple):
    """The texts of the answers: of the long one and the short ones beside it, of a prompt `alone` and again
    `beside` others, and of that with a `stop` text.
    """

    long: str
    short: list[str]
    alone: str
    beside: str
    stop: str
    stopped: str


def ask_beside_each_other(url: str, key: str, run: str) -> Answers:
    """A long answer is streamed; after its second piece others come: three short ones, one with a stop text,
    and one whose caller goes away.
    """
    client = OpenAI(base_url=f"{url}/v1", api_key=key, max_retries=0, timeout=300)

    def streamed(prompt: str, tokens: int, **more: Any) -> Any:
        return client.completions.create(model=run, prompt=prompt, max_tokens=tokens, stream=True, **more)

    def text(prompt: str, tokens: int, **more: Any) -> str:
        return "".join(chunk.choices[0].text for chunk in streamed(prompt, tokens, **more))

    alone = text(PROMPT, 12)
    stop = alone.split()[3]
    begun = threading.Event()

    def long() -> str:
        found = ""
        for number, chunk in enumerate(streamed("The with statement", LONG)):
            found += chunk.choices[0].text
            if number == 2:
                begun.set()
        return found

    def goes_away() -> None:
        stream = streamed("The for statement", LONG)
        for number, _ in enumerate(stream):
            if number == 3:
                stream.close()
                return

    with ThreadPoolExecutor(8) as pool:
        longest = pool.submit(long)
        assert begun.wait(300), longest.exception()
        short = [pool.submit(text, f"The {word} statement is", SHORT) for word in ("if", "try", "return")]
        beside = pool.submit(text, PROMPT, 12)
        stopped = pool.submit(text, PROMPT, LONG, stop=[stop])
        away = pool.submit(goes_away)
        away.result(300)
        texts = [one.result(300) for one in short]
        return Answers(longest.result(300), texts, alone, beside.result(300), stop, stopped.result(300))


def check(answers: Answers, report: dict[str, Any]) -> None:
    """Check the texts, and the run's `report`: requests in the order in which they were taken."""
    assert answers.beside == answers.alone
    assert answers.stopped == answers.alone[: answers.alone.index(answers.stop)]
    assert all(answers.short) and answers.long
    assert report["correctness"]["ok"], report["correctness"]
    assert report["spec"]["workload"]["scheduler"] == "continuous"
    assert not report["fidelity"]["notes"], report["fidelity"]["notes"]
    _, long, *others = report["requests"]
    assert len(long["token_s"]) == LONG
    assert len([one for one in others if len(one["token_s"]) == SHORT]) == 3
    (away,) = [one for one in others if one.get("cancelled_s") is not None]
    assert len(away["token_s"]) < LONG
    begins_s, *_, ends_s = (long["arrival_s"] + token_s for token_s in long["token_s"])
    firsts_s = [one["arrival_s"] + one["token_s"][0] for one in others]
    assert len(others) == 6 and all(begins_s < first_s < ends_s for first_s in firsts_s)
