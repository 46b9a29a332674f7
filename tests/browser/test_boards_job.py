"""Two boards join, are drawn, and a run on them is watched and read; one that is lost ends the next."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from emulator.calibration import known
from engine.models import catalogue
from engine.models.reference import transformers_outputs
from tests.browser.service import proof
from tests.browser.test_main_job import choose_strategy, drag, eventually, open_report
from tests.emulator.node.test_joining import FOUND
from tests.ops.test_up import Up
from tests.support.small_cases import spec_of, star
from tests.support.web import ROOT

pytestmark = [pytest.mark.browser, pytest.mark.root, pytest.mark.redis]
NAMES = ("desk-pi", "shelf-pi")
MODEL = "model-on-boards"
SLOW_FLOP_PER_S = 1e6
"""So slow a device gets a part of the model beside another."""


@contextmanager
def board(site: Up, token: str, home: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A node as the page says it is started, calibrated before."""
    environment = os.environ | {"XDG_CACHE_HOME": str(home), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(ROOT / "loom"), "node", "--join", site.url, "--token", token]
    with (home / "node.log").open("wb") as log:
        node = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
    try:
        yield node
    finally:
        node.terminate()
        node.wait()


@pytest.fixture
def boards(site: Up, context: BrowserContext, tmp_path: Path, monkeypatch) -> Iterator[list[Any]]:
    """Two boards that have joined, each with a home of its own; in the end neither is known any more."""
    slow = FOUND.device.model_copy(update={"flop_per_s": SLOW_FLOP_PER_S})
    headers = proof(context)
    with ExitStack() as stack:
        nodes = []
        for name in NAMES:
            home = tmp_path / name
            monkeypatch.setenv("XDG_CACHE_HOME", str(home))
            known.keep(FOUND.model_copy(update={"device": slow}), {})
            made = context.request.post("/api/nodes", data={"name": name}, headers=headers)
            nodes.append(stack.enter_context(board(site, made.json()["token"], home)))
        monkeypatch.undo()
        yield nodes
    for name in NAMES:
        context.request.delete(f"/api/nodes/{name}", headers=headers)


@pytest.fixture
def weights(site: Up) -> Iterator[str]:
    """A model with trained weights, as somebody has put it among the server's; other tests find the models
    that come with EdgeLoom.
    """
    spec, _ = catalogue.resolve("tiny-llama", "random")
    module = transformers_outputs.library_model(spec_of("single", spec, star((1e8,))))
    place = site.state_dir / "models" / MODEL
    module.save_pretrained(place)
    yield MODEL
    shutil.rmtree(place)


def draw_boards(page: Page) -> None:
    page.goto("/clusters")
    page.get_by_test_id("new-cluster").click()
    for name in NAMES:
        page.get_by_test_id(f"palette-{name}").click()
    drag(page, "device-1", "device-2")
    page.get_by_test_id("node-device-1").click()
    expect(page.get_by_test_id("device-node")).to_have_value("desk-pi")
    page.locator(".react-flow__pane").click(position={"x": 5, "y": 5})
    page.get_by_test_id("cluster-name").fill("two-boards")
    page.get_by_test_id("save-cluster").click()
    expect(page.get_by_test_id("save-state")).to_have_text("saved")


def start_on_boards(
    page: Page, model: str, new_tokens: int, requests: int = 1, failover: str = "Plan again and go on"
) -> int:
    page.goto("/runs/new")
    page.get_by_test_id("choose-cluster-two-boards").click()
    page.get_by_test_id("model").click()
    page.get_by_role("option", name=model).click()
    choose_strategy(page, "megatron")
    page.get_by_text("Random tokens").click()
    page.get_by_test_id("prompt-tokens").fill("12")
    page.get_by_test_id("dilation-kind").get_by_text("On the boards").click()
    expect(page.get_by_test_id("board-links")).to_contain_text("As drawn")
    if folder := os.environ.get("LOOM_PICTURES"):
        page.get_by_test_id("board-links").scroll_into_view_if_needed()
        page.screenshot(path=f"{folder}/links.png")
    page.get_by_test_id("failover").get_by_text(failover).click()
    page.get_by_test_id("requests").fill(str(requests))
    page.get_by_test_id("new-tokens").fill(str(new_tokens))
    expect(page.get_by_test_id("predicted-latency")).to_contain_text("s")
    page.get_by_test_id("start-run").click()
    page.wait_for_url(re.compile(r"/runs/\d+$"))
    return int(page.url.rpartition("/")[2])


def beside_a_drawn_device(context: BrowserContext, model: str) -> dict[str, Any]:
    """The request of a run on the boards and on a device that is none."""
    rows = context.request.get("/api/nodes").json()
    boards = [row["device"] | {"name": row["name"], "node": row["name"]} for row in rows]
    drawn = {"name": "drawn", "flop_per_s": SLOW_FLOP_PER_S, "memory_bytes": 1e9, "memory_byte_per_s": 1e9}
    devices = [*boards, drawn]
    links = [{"a": device["name"], "b": "hub", "bit_per_s": 1e8, "delay_s": 2e-4} for device in devices]
    cluster = {
        "name": "desk",
        "source": NAMES[0],
        "devices": devices,
        "switches": [{"name": "hub"}],
        "links": links,
    }
    return {
        "cluster": cluster,
        "model": model,
        "strategy": "megatron",
        "dilation": "nodes",
        "workload": {"prompt_tokens": 12, "new_tokens": 6},
    }


def test_a_cluster_of_boards_is_drawn_and_run_on_them(
    page: Page, context: BrowserContext, boards: list[Any], weights: str, tmp_path: Path
) -> None:
    def row_of(run_id: int) -> Any:
        return context.request.get(f"/api/runs/{run_id}").json()

    def all_joined() -> bool:
        rows = context.request.get("/api/nodes").json()
        return all(row["connected"] and row["device"] for row in rows)

    eventually(page, all_joined, "the boards to join")
    draw_boards(page)
    run_id = start_on_boards(page, weights, new_tokens=6)
    open_report(page)
    expect(page.get_by_test_id("native-table")).to_contain_text("On the boards")
    expect(page.get_by_test_id("pair-device-1-device-2")).to_contain_text("bit/s")
    expect(page.get_by_test_id("before-latency_s")).to_be_visible()
    if folder := os.environ.get("LOOM_PICTURES"):
        page.screenshot(path=f"{folder}/report.png", full_page=True)
    report = row_of(run_id)["report"]
    assert report["world"] == "nodes" and report["correctness"]["token_identical"] is True
    ranks = {holding["device"] for holding in report["plan"]["holdings"]}
    assert ranks == {0, 1}, "both boards compute"
    slices = [{path.stem for path in (tmp_path / name).glob("edgeloom/slices/*")} for name in NAMES]
    assert all(slices) and not slices[0] & slices[1], "each has its own part of the weights alone"

    beside = context.request.post(
        "/api/runs", data=beside_a_drawn_device(context, weights), headers=proof(context)
    )
    eventually(
        page, lambda: row_of(beside.json()["id"])["status"] == "finished", "the run beside a drawn device"
    )
    report = row_of(beside.json()["id"])["report"]
    assert report["correctness"]["token_identical"] is True
    assert any(note.startswith("No boards: the server played drawn") for note in report["fidelity"]["notes"])

    lost = start_on_boards(page, weights, new_tokens=40, requests=200, failover="End the run")
    eventually(page, lambda: row_of(lost)["status"] == "running", "the run to begin")
    boards[1].kill()
    eventually(page, lambda: row_of(lost)["status"] == "failed", "the run to end")
    sentence = row_of(lost)["report"]["outcome"]["sentence"]
    assert sentence.startswith("device-2 failed at "), sentence
    eventually(page, lambda: not list(tmp_path.glob("*/edgeloom/node-runs/*")), "the boards to clean up")
    page.goto("/runs/new")
    page.get_by_test_id("choose-cluster-two-boards").click()
    if folder := os.environ.get("LOOM_PICTURES"):
        page.screenshot(path=f"{folder}/new-run.png", full_page=True)
    page.get_by_test_id("model").click()
    page.get_by_role("option", name=weights).click()
    page.get_by_text("Random tokens").click()
    page.get_by_test_id("prompt-tokens").fill("12")
    page.get_by_test_id("dilation-kind").get_by_text("On the boards").click()
    page.get_by_test_id("start-run").click()
    expect(page.locator("body")).to_contain_text("the board shelf-pi of device device-2 is away")
