"""/v1 over the real server, asked by OpenAI's own client; the run behind it is played."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Iterator
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio
import redis
import uvicorn
from channels.db import database_sync_to_async

from edgeloom import Client, Refused
from tests.support.served_run import PROMPT_TOKENS, Player, played, serving_run
from tests.support.web import Browser, person
from tests.webapp.accounts.test_tokens import secret_of
from webapp.asgi import application
from webapp.base.errors import Unavailable
from webapp.base.redis import client as redis_client
from webapp.runs.control import list_of
from webapp.runs.models import Run
from webapp.serving import answer as answer_module
from webapp.serving.answer import Cut

if TYPE_CHECKING:
    from openai import AsyncOpenAI

pytestmark = [pytest.mark.redis, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def secrets(transactional_db: None) -> dict[str, str]:
    found = {}
    for name, role in (("olga", "operator"), ("victor", "viewer")):
        person(name, role)
        browser = Browser()
        browser.log_in(name)
        found[name] = secret_of(browser, role)
    return found


@pytest.fixture
def run(live_redis: redis.Redis, transactional_db: None) -> Run:
    return serving_run()


@pytest.fixture
def player(run: Run) -> Iterator[Player]:
    with played(run) as player:
        yield player


@pytest_asyncio.fixture
async def address() -> AsyncIterator[str]:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        config = uvicorn.Config(application, lifespan="off", log_level="warning")
        server = uvicorn.Server(config)
        server.install_signal_handlers = lambda: None  # type: ignore[method-assign]
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        server.should_exit = True
        await serving


@pytest.fixture(scope="module")
def openai() -> ModuleType:
    """Imported for the tests that use it: it takes a second in each process that only looks for tests."""
    import openai

    return openai


@pytest_asyncio.fixture
async def client(
    openai: ModuleType, address: str, secrets: dict[str, str], player: Player, settings: Any
) -> AsyncIterator[AsyncOpenAI]:
    settings.ALLOWED_HOSTS = ["127.0.0.1", "testserver"]
    async with openai.AsyncOpenAI(base_url=f"{address}/v1", api_key=secrets["olga"], max_retries=0) as made:
        yield made


async def test_the_client_of_openai_gets_models_and_whole_and_streamed_answers(
    client: AsyncOpenAI, run: Run, player: Player
) -> None:
    (model,) = (await client.models.list()).data
    assert model.id == "edge"
    assert (await client.models.retrieve(str(run.pk))).id == "edge"

    whole = await client.completions.create(model="edge", prompt="a b c", max_tokens=50, temperature=0)
    assert whole.choices[0].text == "a b c "
    assert whole.choices[0].finish_reason == "stop"
    assert whole.usage is not None
    assert (whole.usage.prompt_tokens, whole.usage.completion_tokens) == (PROMPT_TOKENS, 3)
    assert whole.usage.total_tokens == PROMPT_TOKENS + 3

    short = await client.completions.create(model=str(run.pk), prompt=[5, 6, 7], max_tokens=2)
    assert (short.choices[0].text, short.choices[0].finish_reason) == ("5 6 ", "length")
    assert player.commands[-1]["tokens"] == [5, 6, 7]
    assert player.commands[-1]["sampling"] == {}

    stream = await client.chat.completions.create(
        model="edge",
        messages=[{"role": "user", "content": "one two three"}],
        stream=True,
        stream_options={"include_usage": True},
    )
    chunks = [chunk async for chunk in stream]
    texts = [choice.delta.content for chunk in chunks for choice in chunk.choices]
    assert texts == ["", "one ", "two ", "three ", None]
    assert chunks[0].choices[0].delta.role == "assistant"
    assert [choice.finish_reason for chunk in chunks for choice in chunk.choices] == [None] * 4 + ["stop"]
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.completion_tokens == 3

    talk = await client.chat.completions.create(
        model="edge",
        messages=[{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Hi"}],
        max_completion_tokens=9,
    )
    assert talk.choices[0].message.content == "System: Be kind. User: Hi Assistant: "
    assert (
        player.commands[-1] | {"text": "System: Be kind.\nUser: Hi\nAssistant:", "new_tokens": 9}
        == (player.commands[-1])
    )
    assert player.commands[-1]["messages"] == [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "Hi"},
    ]


async def test_a_second_turn_is_answered_with_the_first_as_the_client_keeps_it(
    client: AsyncOpenAI, player: Player
) -> None:
    talk: list[Any] = [{"role": "user", "content": "one two"}]
    first = await client.chat.completions.create(model="edge", messages=talk)
    talk += [first.choices[0].message, {"role": "user", "content": "three"}]
    await client.chat.completions.create(model="edge", messages=talk)
    said = [(message["role"], message["content"]) for message in player.commands[-1]["messages"]]
    assert said == [("user", "one two"), ("assistant", "one two "), ("user", "three")]


async def test_a_run_that_says_nothing_to_a_request_is_given_up_and_told(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answer_module, "ACCEPT_WALL_S", 0.05)
    olga = await asyncio.to_thread(person, "olga", "operator")
    asked = answer_module.pieces(run, olga, {"text": "Hi", "new_tokens": 3}, (), answer_module.Answer())
    with pytest.raises(Unavailable, match=r"The run has not answered for 0\.05 s"):
        await asyncio.wait_for(anext(asked), 120)
    sent = [
        json.loads(str(text))["command"]["kind"] for text in redis_client().lrange(list_of(run.pk), 0, -1)
    ]
    assert sent == ["ask", "withdraw"]


async def test_an_answer_goes_on_behind_the_end_of_a_text_only_if_somebody_asks_for_that(
    client: AsyncOpenAI, player: Player
) -> None:
    """`ignore_eos` is of load generators, which want as many tokens as they ask for."""
    await client.completions.create(model="edge", prompt="a b", max_tokens=2)
    assert player.commands[-1]["stops"] is True
    await client.completions.create(model="edge", prompt="a b", max_tokens=2, extra_body={"ignore_eos": True})
    assert player.commands[-1]["stops"] is False


async def test_an_answer_ends_before_a_stop_text_and_the_run_is_told(
    client: AsyncOpenAI, player: Player
) -> None:
    answer = await client.completions.create(model="edge", prompt="hang", max_tokens=9, stop=["ng"])
    assert (answer.choices[0].text, answer.choices[0].finish_reason) == ("ha", "stop")
    await told(player, {"kind": "withdraw", "answered": True})


async def told(player: Player, expected: dict[str, Any]) -> None:
    """Wait until the last command has these values."""
    while not expected.items() <= player.commands[-1].items():
        await asyncio.sleep(0.01)


async def test_a_caller_who_goes_away_cancels_the_request(client: AsyncOpenAI, player: Player) -> None:
    stream = await client.completions.create(model="edge", prompt="hang on", max_tokens=9, stream=True)
    texts = []
    async for chunk in stream:
        texts.append(chunk.choices[0].text)
        if "hang " in texts:
            await stream.close()
            break
    await told(player, {"kind": "withdraw", "answered": False})


async def test_an_answer_that_the_run_does_not_complete_is_an_error_with_the_reason(
    openai: ModuleType, client: AsyncOpenAI
) -> None:
    with pytest.raises(openai.APIError, match=r"The run is failed .* d1 is gone\."):
        stream = await client.completions.create(model="edge", prompt="die now", stream=True)
        [chunk async for chunk in stream]


async def test_what_is_not_possible_is_said_in_the_form_of_openai(
    openai: ModuleType, client: AsyncOpenAI, secrets: dict[str, str], address: str
) -> None:
    ask = client.completions.create
    with pytest.raises(openai.NotFoundError, match="Runs that serve: edge"):
        await ask(model="gpt-4", prompt="a")
    with pytest.raises(openai.BadRequestError, match="takes up to 100: shorten it") as caught:
        await ask(model="edge", prompt="refuse me")
    assert caught.value.param == "prompt"
    with pytest.raises(openai.RateLimitError):
        await ask(model="edge", prompt="busy")
    with pytest.raises(openai.BadRequestError, match="expected a number from 0 to 10") as caught:
        await ask(model="edge", prompt="a", temperature=70)
    assert caught.value.type == "invalid_request_error"
    for wrong in (
        {"n": 2},
        {"n": 10**400},
        {"prompt": ["a", "b"]},
        {"max_tokens": 0},
        {"stop": [""]},
        {"echo": True},
    ):
        with pytest.raises(openai.BadRequestError):
            await ask(**({"model": "edge", "prompt": "a"} | wrong))
    with pytest.raises(openai.BadRequestError, match="tool_choice") as caught:
        await ask(model="edge", prompt="a", extra_body={"tool_choice": "required"})
    assert caught.value.param == "tool_choice"
    with pytest.raises(openai.AuthenticationError):
        await client.with_options(api_key="loom_unknown").models.list()
    viewer = client.with_options(api_key=secrets["victor"])
    assert [one.id for one in (await viewer.models.list()).data] == ["edge"]
    with pytest.raises(openai.PermissionDeniedError, match="may look but not change"):
        await viewer.completions.create(model="edge", prompt="a")


async def test_a_notebook_asks_lists_follows_and_is_told_what_is_wrong(
    client: AsyncOpenAI, secrets: dict[str, str], address: str, run: Run
) -> None:
    def used() -> None:
        notebook = Client(address, secrets["olga"])
        table = notebook.runs_frame(status="running")
        assert table.loc[run.pk, "name"] == "edge"
        assert notebook.runs_frame(status="queued").empty
        served = notebook.run(run.pk)
        assert list(served.ask("a b c", 2)) == ["a ", "b "]
        with pytest.raises(Refused, match="takes up to 100: shorten it") as refused:
            list(served.ask("refuse"))
        assert refused.value.status == 400
        with pytest.raises(Refused, match="There is no run 0"):
            notebook.run(0).detail()
        with pytest.raises(Refused, match="unknown or was revoked"):
            Client(address, "loom_no").runs()
        with pytest.raises(Refused, match=r"d1 is gone\."):
            list(served.ask("die"))
        events = list(served.events())
        marks = [event["name"] for event in events if event["type"] == "mark"]
        assert marks.count("token_emitted") == 3
        assert events[-1] == {"type": "state", "state": "failed", "detail": "d1 is gone."}

    await asyncio.to_thread(used)
    with pytest.raises(ConnectionError, match="does not answer"):
        await asyncio.to_thread(Client("http://127.0.0.1:9", "loom_no").runs)


async def test_a_session_opens_nothing_below_v1_and_two_runs_of_a_name_are_told_apart(
    openai: ModuleType, client: AsyncOpenAI, run: Run
) -> None:
    def asked() -> tuple[int, Any]:
        browser = Browser()
        browser.log_in("olga")
        response = browser.client.get("/v1/models")
        return response.status_code, json.loads(response.content)

    status, body = await database_sync_to_async(asked)()
    assert (status, body["error"]["type"]) == (401, "authentication_error")
    other = await database_sync_to_async(serving_run)()
    with pytest.raises(openai.ConflictError, match=f"{other.pk}, {run.pk}"):
        await client.completions.create(model="edge", prompt="a")


@pytest.mark.parametrize(
    ("pieces", "shown"),
    [
        (["ab", "cd"], ["ab", "cd"]),
        (["ab", "STOP", "cd"], ["ab"]),
        (["abST", "OPcd"], ["ab"]),
        (["abST", "ART"], ["ab", "START"]),
        (["abST"], ["ab", "ST"]),
        (["aSSTOPb"], ["aS"]),
    ],
)
def test_nothing_of_a_stop_text_is_shown_and_nothing_else_is_lost(
    pieces: list[str], shown: list[str]
) -> None:
    cut = Cut(["STOP", "nothing"])
    found = [cut.add(piece) for piece in pieces] + [cut.rest()]
    assert [text for text in found if text] == shown


def test_the_live_page_asks_cancels_and_ends_and_only_who_may(run: Run, player: Player) -> None:
    person("olga", "operator")
    person("otto", "operator")
    person("victor", "viewer")
    Run.objects.filter(pk=run.pk).update(owner=person_named("olga"))
    olga, otto, victor = Browser(), Browser(), Browser()
    for browser, name in ((olga, "olga"), (otto, "otto"), (victor, "victor")):
        browser.log_in(name)
    asked = otto.post(f"/runs/{run.pk}/requests", {"text": "hang", "new_tokens": 3})
    assert asked.status_code == 202
    name = asked.json()["id"]
    assert victor.post(f"/runs/{run.pk}/requests", {"text": "a"}).status_code == 403
    assert otto.post(f"/runs/{run.pk}/end-service").status_code == 403
    assert otto.delete(f"/runs/{run.pk}/requests/{name}").status_code == 202
    mine = olga.post(f"/runs/{run.pk}/requests", {"text": "hang"}).json()["id"]
    assert otto.delete(f"/runs/{run.pk}/requests/{mine}").status_code == 403
    assert olga.delete(f"/runs/{run.pk}/requests/{name}").status_code == 202
    assert olga.post(f"/runs/{run.pk}/end-service").status_code == 202
    fixed = serving_run(pattern="sporadic")
    refused = olga.post(f"/runs/{fixed.pk}/requests", {"text": "a"})
    assert (refused.status_code, "fixed workload" in refused.json()["detail"]) == (409, True)
    over = serving_run(status="finished")
    assert "only a running run" in olga.post(f"/runs/{over.pk}/requests", {"text": "a"}).json()["detail"]


def person_named(name: str) -> Any:
    from django.contrib.auth.models import User

    return User.objects.get(username=name)
