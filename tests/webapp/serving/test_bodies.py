"""What /v1 understands of a body, what it takes as changing nothing, and its words for what it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from engine.domain.errors import SpecError
from webapp.serving.bodies import Chat, Completion, parse

CLIENTS = json.loads(Path(__file__).with_name("client_bodies.json").read_text())
"""Bodies that eight clients send with `edge` as the model: recorded at a server on this machine, or written
from the client's source.
"""
KINDS = {"completions": Completion, "chat/completions": Chat}

USER = {"role": "user", "content": "Why?"}


def chat(**fields: Any) -> Chat:
    return parse(Chat, json.dumps({"model": "edge", "messages": [USER]} | fields).encode())


def refused(kind: type[Completion] | type[Chat], **fields: Any) -> tuple[str, str]:
    """The sentence of a refusal, and the field that it blames."""
    needed = {"messages": [USER]} if kind is Chat else {"prompt": "Why"}
    with pytest.raises(SpecError) as caught:
        parse(kind, json.dumps({"model": "edge"} | needed | fields).encode())
    return str(caught.value), caught.value.fields[0][0]


@pytest.mark.parametrize("sent", CLIENTS, ids=lambda sent: sent["client"])
def test_what_a_client_sends_by_itself_is_understood(sent: dict[str, Any]) -> None:
    body = parse(KINDS[sent["path"]], json.dumps(sent["body"]).encode())
    asked = body.prompt_of()
    assert "tokens" in asked or asked["text"]
    assert body.new_tokens in (None, 20, 32, 256)


def test_an_answer_may_come_back_with_all_that_clients_know_of_it() -> None:
    answer = {
        "role": "assistant",
        "content": "Because.",
        "refusal": None,
        "annotations": [],
        "audio": None,
        "tool_calls": None,
        "function_call": None,
        "provider_specific_fields": {"refusal": None},
        "reasoning_content": "Hm.",
    }
    empty = {"role": "assistant", "content": None}
    talk = chat(messages=[USER, answer, USER, empty, USER]).prompt_of()["messages"]
    assert [message["content"] for message in talk] == ["Why?", "Because.", "Why?", "", "Why?"]


@pytest.mark.parametrize(
    "fields",
    [
        {"temperature": 0, "top_p": 0.5, "top_k": 50, "min_p": 0.2},
        {"ignore_eos": True, "min_tokens": 9},
        {"tools": None, "anything": None},
        {"tool_choice": "auto", "tools": []},
        {"stop": None},
        {"stop": []},
        {"add_generation_prompt": True, "continue_final_message": False, "chat_template_kwargs": {}},
        {"skip_special_tokens": True, "spaces_between_special_tokens": True, "bad_words": []},
        {"reasoning_effort": "low"},
    ],
)
def test_a_value_that_changes_nothing_is_taken(fields: dict[str, Any]) -> None:
    chat(**fields)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({}, {}),
        ({"temperature": None, "seed": None}, {}),
        ({"temperature": 1e-9, "top_p": 0.5}, {"temperature": 0.0, "top_p": 0.5}),
        ({"temperature": 1e-5, "seed": -3}, {"temperature": 1e-5, "seed": -3}),
        ({"temperature": 1, "top_k": -1}, {"temperature": 1, "top_k": 0}),
        ({"top_k": 40}, {"top_k": 40}),
    ],
)
def test_how_tokens_are_drawn_is_what_a_client_says_of_it_and_no_more(
    fields: dict[str, Any], said: dict[str, Any]
) -> None:
    assert chat(**fields).sampling == said


def test_an_answer_may_end_at_one_of_sixteen_texts() -> None:
    assert chat(stop=list("abcdefghijklmnop")).stop == tuple("abcdefghijklmnop")


@pytest.mark.parametrize(
    ("kind", "fields", "blamed", "said"),
    [
        (Chat, {"temperature": 10.5}, "temperature", "expected a number from 0 to 10"),
        (Chat, {"temperature": False}, "temperature", "false is given, expected a number"),
        (Chat, {"temperature": -1e-9}, "temperature", "expected a number from 0 to 10"),
        (Chat, {"temperature": 0.7, "min_p": 0.2}, "min_p", "give 0 or leave it out"),
        (Chat, {"top_p": 0}, "top_p", "expected a number above 0"),
        (Chat, {"top_k": -2}, "top_k", "-1 or 0 for all"),
        (Chat, {"seed": 1.5}, "seed", "a whole number of 64 bits"),
        (Chat, {"presence_penalty": 0.5}, "presence_penalty", "as likely as the model says"),
        (Chat, {"chat_template_kwargs": {"a": 1}}, "chat_template_kwargs", "give {} or leave it out"),
        (Chat, {"reasoning_effort": "most"}, "reasoning_effort", 'give "none" or "minimal" or'),
        (Chat, {"n": True}, "n", "true is given"),
        (Chat, {"logprobs": 0}, "logprobs", "text alone"),
        (Chat, {"min_tokens": 9}, "min_tokens", "ignore_eos"),
        (Chat, {"tools": [{}]}, "tools", "knows no tools"),
        (Chat, {"tool_choice": "required"}, "tool_choice", 'give "none" or "auto"'),
        (Chat, {"response_format": {"type": "json_object"}}, "response_format", "no other form than text"),
        (Chat, {"guided_regex": "a+"}, "guided_regex", "no run knows this field"),
        (Chat, {"messages": []}, "messages", "a list of 1 to 1000 messages"),
        (Chat, {"messages": ["Why?"]}, "messages[0]", '"Why?" is given, expected an object'),
        (Chat, {"messages": [USER, {"role": "tool", "content": ""}]}, "messages[1].role", "expected system"),
        (Chat, {"messages": [{"role": "user", "content": None}]}, "messages[0].content", "null is given"),
        (Chat, {"messages": [{"role": "user"}]}, "messages[0].content", "it is missing"),
        (
            Chat,
            {"messages": [USER, {"role": "assistant", "content": None, "tool_calls": [{}]}]},
            "messages[1].tool_calls",
            "leave the message out",
        ),
        (
            Chat,
            {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]},
            "messages[0].content",
            'part 0 is "image_url"',
        ),
        (
            Chat,
            {"messages": [{"role": "user", "content": ["text"]}]},
            "messages[0].content",
            'part 0 is "text", expected an object',
        ),
        (Chat, {"stop": list("abcdefghijklmnopq")}, "stop", "17 texts are given"),
        (Chat, {"stop": ["a" * 201]}, "stop", "201 characters, expected 1 to 200"),
        (Chat, {"stop": 5}, "stop", "expected a text or up to 16 texts"),
        (Chat, {"model": 5}, "model", "the name or the number of a run"),
        (Chat, {"stream": "maybe"}, "stream", "expected true or false"),
        (Chat, {"stream_options": 4}, "stream_options", "expected an object"),
        (Chat, {"stream_options": {"include_usage": 4}}, "stream_options.include_usage", "true or false"),
        (Completion, {"max_tokens": 0}, "max_tokens", "expected a whole number from 1"),
        (Completion, {"max_tokens": True}, "max_tokens", "true is given, expected a whole number from 1"),
        (Completion, {"max_tokens": 10**18}, "max_tokens", "expected a whole number from 1"),
        (Completion, {"max_tokens": "many"}, "max_tokens", '"many" is given'),
        (Completion, {"prompt": ["a", "b"]}, "prompt", "send a request for each"),
        (Completion, {"prompt": [[True]]}, "prompt", "a text or a list of token ids"),
        (Completion, {"prompt": []}, "prompt", "a text or a list of token ids"),
        (Completion, {"echo": True}, "echo", "text alone"),
        (Completion, {"best_of": 2}, "best_of", "give 1"),
        (Completion, {"messages": [USER]}, "messages", "no run knows this field"),
    ],
)
def test_a_refusal_has_our_words_and_names_the_field(
    kind: type[Completion] | type[Chat], fields: dict[str, Any], blamed: str, said: str
) -> None:
    sentence, field = refused(kind, **fields)
    assert field == blamed
    assert said in sentence
    for words in ("Input should", "Extra inputs", "validation", "constrained", "None"):
        assert words not in sentence


@pytest.mark.parametrize("data", [b"", b"{", b"[1]", b"[" * 100_000, b"\xff", b'{"n": ' + b"1" * 5000 + b"}"])
def test_a_body_that_is_no_object_is_refused(data: bytes) -> None:
    with pytest.raises(SpecError, match=r"is no JSON|is not UTF-8|nested deeper|has 5000 characters"):
        parse(Chat, data)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"messages": [USER | {"content": "Why\0?"}]}, "NUL character"),
        ({"messages": [USER | {"content": "\ud800"}]}, "half a surrogate pair"),
        ({"stop": "\udfff" * 300}, "half a surrogate pair"),
        ({"\ud800": 1}, "half a surrogate pair"),
    ],
)
def test_a_text_that_no_run_could_take_is_refused(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(SpecError, match=said):
        chat(**fields)


def test_a_run_s_refusal_blames_the_field_that_the_client_sent() -> None:
    refusal = SpecError("9 new tokens are asked for.", [("new_tokens", "too many")])
    assert chat(max_completion_tokens=9).named(refusal).fields[0][0] == "max_completion_tokens"
    assert chat(max_tokens=9).named(refusal).fields[0][0] == "max_tokens"
    long = SpecError("The prompt has 101 tokens.", [("prompt", "too long")])
    assert chat().named(long).fields[0][0] == "messages"
    assert str(chat().named(long)) == "The prompt has 101 tokens."
