"""A picture as a person gives it: chosen in the form, shown as the model sees it, classified in the end."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from PIL import Image
from playwright.sync_api import Page, expect

from tests.browser.test_main_job import open_report

pytestmark = [pytest.mark.browser, pytest.mark.root, pytest.mark.redis]


def choose_model(page: Page, name: str) -> None:
    page.get_by_test_id("model").fill(name)
    page.get_by_role("option", name=re.compile(rf"^{name}")).click()


def test_a_picture_is_chosen_seen_and_classified(page: Page, tmp_path: Path) -> None:
    file = tmp_path / "sunset.jpg"
    Image.radial_gradient("L").resize((300, 200)).convert("RGB").save(file)
    page.goto("/runs/new")
    choose_model(page, "tiny-vit")
    shown = page.get_by_test_id("picture-shown")
    expect(shown).to_have_attribute("alt", "A random picture")
    expect(page.get_by_test_id("prompt")).to_have_count(0)

    page.get_by_test_id("picture").locator("input[type=file]").set_input_files(file)
    expect(shown).to_have_attribute("alt", "The picture as the model sees it")
    expect(page.get_by_test_id("picture")).to_contain_text("sunset.jpg")
    small = shown.get_attribute("src")
    choose_model(page, "tiny-llava")
    expect(page.get_by_test_id("prompt")).to_be_visible()
    expect(shown).not_to_have_attribute("src", small or "")
    choose_model(page, "tiny-vit")
    expect(shown).to_have_attribute("src", small or "")

    page.get_by_test_id("strategy-voltage").click()
    expect(page.get_by_test_id("predicted-latency")).to_contain_text("s")
    page.get_by_test_id("start-run").click()
    page.wait_for_url(re.compile(r"/runs/\d+$"))
    open_report(page)
    expect(page.get_by_test_id("seen")).to_be_visible()
    expect(page.get_by_test_id("picture-shown")).to_have_attribute("src", small or "")
    expect(page.get_by_test_id("seen").locator("[data-testid^=class-]")).to_have_count(5)


def test_a_file_that_is_no_picture_is_refused_in_words(page: Page, tmp_path: Path) -> None:
    file = tmp_path / "notes.png"
    file.write_text("not a picture")
    page.goto("/runs/new")
    choose_model(page, "tiny-vit")
    page.get_by_test_id("picture").locator("input[type=file]").set_input_files(file)
    expect(page.get_by_test_id("picture-error")).to_contain_text("neither PNG nor JPEG")
