"""Whole answers of the API and the manual are compressed for whoever takes that; streams are not."""

import gzip
import json

import pytest
from django.http import HttpResponse, StreamingHttpResponse
from django.test import RequestFactory

from tests.support.web import Browser, person
from webapp.http.compression import CompressedAnswers

TAKES_GZIP = {"accept-encoding": "gzip, deflate, br"}
LONG = json.dumps(["the same again"] * 100)


@pytest.mark.django_db
def test_a_list_of_the_api_is_compressed_for_browsers_and_plain_for_others() -> None:
    person("ann", "operator")
    browser = Browser()
    browser.log_in("ann")
    small = browser.client.get("/api/showcases", headers=TAKES_GZIP)
    whole = browser.client.get("/api/showcases")
    assert small.headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(small.content) == whole.content
    assert len(small.content) < len(whole.content) / 5
    assert not whole.has_header("Content-Encoding")


@pytest.mark.parametrize(
    ("path", "streams", "compressed"),
    [
        ("/api/runs", False, True),
        ("/api/runs", True, False),
        ("/v1/models", False, False),
        ("/docs/sections.js", False, True),
        ("/docs/guides/chat.png", True, False),
        ("/x", False, False),
    ],
)
def test_only_whole_answers_of_the_api_and_the_manual_are_compressed(
    path: str, streams: bool, compressed: bool
) -> None:
    answer = StreamingHttpResponse([LONG]) if streams else HttpResponse(LONG)
    request = RequestFactory().get(path, headers=TAKES_GZIP)
    found = CompressedAnswers(lambda request: answer)(request)
    assert found.has_header("Content-Encoding") is compressed
