"""The editor without a mouse: draw, link, move, save, reload, copy into another cluster, group, undo. And
with it: drag from the palette, select by boxes, export and import files.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

import topologies
from tests.browser.test_main_job import eventually

pytestmark = [pytest.mark.browser, pytest.mark.root, pytest.mark.redis]


def pick(page: Page, key: str, name: str) -> None:
    """Press a key that asks for a node, type the node's name, press Enter."""
    page.keyboard.press(key)
    expect(page.get_by_test_id("picker-text")).to_be_focused()  # what is typed before goes to the canvas
    page.keyboard.type(name)
    expect(page.get_by_test_id(f"pick-{name}")).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Enter")
    expect(page.get_by_test_id("picker-text")).to_have_count(0)


def add(page: Page, words: str, node: str) -> None:
    """Find a device in the palette and add it."""
    page.keyboard.press("a")
    page.keyboard.press("Control+a")
    page.keyboard.type(words)
    page.keyboard.press("Enter")
    page.get_by_test_id(f"node-{node}").wait_for()
    page.keyboard.press("Escape")


def drawn(page: Page) -> dict[str, object]:
    """What is on the canvas: the place of every node, and the links."""
    seen: dict[str, object] = page.evaluate(
        """() => ({
            nodes: Object.fromEntries([...document.querySelectorAll('.react-flow__node')]
                .map((node) => [node.dataset.id, node.style.transform])),
            links: [...document.querySelectorAll('.react-flow__edge')].map((edge) => edge.dataset.id).sort(),
        })"""
    )
    return seen


@pytest.mark.long("webapp/frontend/src", "webapp/clusters")
def test_a_cluster_is_drawn_saved_and_copied_with_the_keyboard_alone(page: Page) -> None:
    keys = page.keyboard
    page.goto("/clusters/new")
    page.get_by_test_id("palette-raspberry-pi-4").wait_for()
    add(page, "pi 4", "device-1")
    add(page, "pi 3", "device-2")
    add(page, "zero 2", "device-3")
    expect(page.get_by_test_id("validity")).to_have_text("3 problems")
    for node in ("device-2", "device-3"):
        pick(page, "/", node)
        pick(page, "l", "device-1")
        page.get_by_test_id(f"link-{node}--device-1").wait_for()
    pick(page, "/", "device-1")
    for _ in range(4):
        keys.press("Shift+ArrowDown")
    expect(page.get_by_test_id("validity")).to_have_text("valid")
    keys.press("Escape")
    page.get_by_test_id("cluster-name").fill("by-keys")
    keys.press("Control+s")
    expect(page.get_by_test_id("save-state")).to_have_text("saved")
    expect(page.get_by_role("heading", level=1)).to_have_text("by-keys")
    page.wait_for_url(re.compile(r"/clusters/\d+$"))

    before = drawn(page)
    assert before["links"] == ["device-2--device-1", "device-3--device-1"]
    page.reload()
    page.get_by_test_id("node-device-1").wait_for()
    eventually(page, lambda: drawn(page) == before, "what was drawn")
    expect(page.get_by_test_id("save-state")).to_have_text("saved")

    pick(page, "/", "device-1")
    keys.press("ArrowDown")
    expect(page.get_by_test_id("save-state")).to_have_text("not saved")
    eventually(page, lambda: drawn(page) != before, "the move")  # the canvas is drawn after the state
    keys.press("Control+z")
    expect(page.get_by_test_id("save-state")).to_have_text("saved")
    eventually(page, lambda: drawn(page) == before, "what was drawn")

    keys.press("Control+a")
    keys.press("g")
    page.get_by_test_id("frame-Group 1").wait_for()
    keys.press("c")
    page.get_by_test_id("group-Group 1").wait_for()
    expect(page.locator(".react-flow__node")).to_have_count(1)
    keys.press("Control+c")
    keys.press("Control+z")
    keys.press("Control+z")
    eventually(page, lambda: drawn(page) == before, "what was drawn")

    page.goto("/clusters/new")  # what was copied comes from the clipboard: the page knows nothing any more
    page.get_by_test_id("palette-raspberry-pi-4").wait_for()
    keys.press("Control+v")
    page.get_by_test_id("group-Group 1").wait_for()
    keys.press("c")
    expect(page.locator(".react-flow__node-device")).to_have_count(3)
    expect(page.locator(".react-flow__edge")).to_have_count(2)  # drawn once the nodes are measured
    assert drawn(page)["links"] == before["links"]
    keys.press("?")
    expect(page.get_by_test_id("shortcuts")).to_contain_text("Link the selected nodes")
    keys.press("Escape")
    expect(page.get_by_test_id("shortcuts")).to_have_count(0)
    leave_only_when_asked(page)


@pytest.mark.long("webapp/frontend/src", "webapp/clusters", "topologies")
def test_a_link_and_a_disk_are_of_the_kind_that_was_chosen_until_they_are_edited(page: Page) -> None:
    page.goto("/clusters/new")
    page.get_by_test_id("palette-raspberry-pi-4").wait_for()
    add(page, "pi 4", "device-1")
    add(page, "pi 3", "device-2")
    disk, link = page.get_by_test_id("disk-preset"), page.get_by_test_id("link-preset")
    pick(page, "/", "device-2")
    expect(disk).to_have_value(re.compile("25 MB/s bus"))
    pick(page, "l", "device-1")
    expect(link).to_have_value("")
    link.click()
    page.get_by_role("option", name="Gigabit Ethernet by USB 2").click()
    expect(page.get_by_test_id("link-bit_per_s")).to_have_value("260")
    expect(page.get_by_test_id("link-preset-source")).to_contain_text("internet-pi issue 105")
    page.get_by_test_id("node-device-1").click()
    disk.click()
    page.get_by_role("option", name="SSD through USB 3").click()
    expect(page.get_by_test_id("device-disk_byte_per_s")).to_have_value("360")
    page.get_by_test_id("save-cluster").click()
    page.wait_for_url(re.compile(r"/clusters/\d+$"))

    page.reload()
    page.get_by_test_id("node-device-1").wait_for()
    pick(page, "/", "device-1")
    expect(disk).to_have_value(re.compile("SSD through USB 3"))
    page.get_by_test_id("device-disk_byte_per_s").fill("361")
    expect(disk).to_have_value("")
    page.get_by_test_id("link-device-2--device-1").click(force=True)
    expect(link).to_have_value(re.compile("by USB 2"))
    page.get_by_test_id("link-delay_s").fill("7")
    expect(link).to_have_value("")
    expect(page.get_by_test_id("link-preset-source")).to_have_count(0)


def leave_only_when_asked(page: Page) -> None:
    """By a link and by the browser's way back, from a drawing that is not saved."""
    page.get_by_test_id("nav-clusters").click()
    page.get_by_test_id("stay").click()
    expect(page.get_by_test_id("save-state")).to_have_text("not saved")
    page.get_by_test_id("nav-clusters").click()
    page.get_by_test_id("leave").click()
    page.get_by_test_id("new-cluster").click()
    page.get_by_test_id("palette-switch").click()
    expect(page.get_by_test_id("save-state")).to_have_text("not saved")
    page.evaluate("history.back()")
    page.get_by_test_id("stay").click()
    expect(page).to_have_url(re.compile(r"/clusters/new$"))
    expect(page.get_by_test_id("save-state")).to_have_text("not saved")
    expect(page.get_by_test_id("stay")).to_have_count(0)
    page.evaluate("history.back()")
    page.get_by_test_id("leave").click()
    page.get_by_test_id("new-cluster").wait_for()


def open_lab_3(page: Page) -> None:
    page.goto("/clusters")
    page.get_by_text("Three unequal boards").first.click()
    page.get_by_test_id("node-desk").wait_for()


def selected(page: Page) -> list[str]:
    found: list[str] = page.evaluate(
        """() => [...document.querySelectorAll('.react-flow__node.selected, .react-flow__edge.selected')]
            .map((item) => item.dataset.id).sort()"""
    )
    return found


def draw_box(page: Page, node: str, *held: str) -> None:
    """Drag a box around a node, with keys held."""
    box = page.locator(f'.react-flow__node[data-id="{node}"]').bounding_box()
    assert box
    for key in held:
        page.keyboard.down(key)
    page.mouse.move(box["x"] - 20, box["y"] - 20)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] + 20, box["y"] + box["height"] + 20, steps=5)
    page.mouse.up()
    for key in held:
        page.keyboard.up(key)


@pytest.mark.long("webapp/frontend/src", "webapp/clusters", "topologies")
def test_a_box_replaces_what_was_selected_unless_a_key_adds_it(page: Page) -> None:
    open_lab_3(page)
    page.get_by_test_id("node-window").click()
    assert selected(page) == ["window"]
    draw_box(page, "desk", "Shift")
    assert selected(page) == ["desk", "desk--hub"]
    draw_box(page, "shelf", "Control", "Shift")
    assert selected(page) == ["desk", "desk--hub", "shelf", "shelf--hub"]
    page.keyboard.press("Escape")
    page.keyboard.press("b")
    draw_box(page, "window")
    draw_box(page, "shelf")
    assert selected(page) == ["shelf", "shelf--hub"]
    draw_box(page, "desk", "Control")
    assert selected(page) == ["desk", "desk--hub", "shelf", "shelf--hub"]
    page.keyboard.press("b")


@pytest.mark.long("webapp/frontend/src", "webapp/clusters", "topologies")
def test_a_box_forgets_the_links_inside_a_collapsed_group(page: Page) -> None:
    open_lab_3(page)
    page.keyboard.press("Control+a")
    page.keyboard.press("g")
    page.keyboard.press("c")
    page.get_by_test_id("group-Group 1").wait_for()
    page.get_by_test_id("palette-switch").click()
    page.get_by_test_id("node-switch-1").wait_for()
    page.keyboard.press("Control+a")  # also the links that the group hides
    page.keyboard.press("b")
    draw_box(page, "switch-1")
    page.keyboard.press("Delete")
    page.keyboard.press("Escape")
    pick(page, "/", "desk")
    page.keyboard.press("c")
    expect(page.locator(".react-flow__edge")).to_have_count(3)


def test_as_many_devices_as_chosen_are_dragged_as_one_step_to_undo(page: Page) -> None:
    page.goto("/clusters/new")
    page.get_by_test_id("palette-count").fill("4")
    page.get_by_test_id("palette-raspberry-pi-4").drag_to(
        page.get_by_test_id("canvas"), target_position={"x": 450, "y": 250}
    )
    expect(page.locator(".react-flow__node")).to_have_count(4)
    page.keyboard.press("Control+z")
    expect(page.locator(".react-flow__node")).to_have_count(0)


@pytest.mark.long("webapp/frontend/src", "webapp/clusters", "topologies")
def test_a_file_of_every_format_goes_out_and_in(page: Page, tmp_path: Path) -> None:
    open_lab_3(page)
    before = drawn(page)
    files = {form: exported(page, form, tmp_path) for form in topologies.FORMATS}
    for form, file in files.items():
        assert file.name == f"lab-3.{form}"
        assert topologies.load(file) == topologies.load("lab-3")
        page.goto("/clusters/new")
        page.get_by_test_id("editor-menu").click()
        page.get_by_test_id("menu-import").click()
        with page.expect_file_chooser() as chosen:
            page.get_by_test_id("import-file").click()
        chosen.value.set_files(file)
        page.get_by_test_id("node-desk").wait_for()
        assert drawn(page) == before, form
        page.get_by_test_id("editor-menu").click()
        expect(page.get_by_test_id(f"export-{form}")).to_be_disabled()  # what is drawn is not stored

    page.get_by_test_id("menu-import").click()
    page.get_by_test_id("import-text").fill("name: x\nsource: a\n\tdevice: []\n")
    page.get_by_test_id("import-take").click()
    expect(page.get_by_test_id("error")).to_contain_text("a tab cannot indent: write spaces (at line 3")


def exported(page: Page, form: topologies.Format, folder: Path) -> Path:
    page.get_by_test_id("editor-menu").click()
    with page.expect_download() as saved:
        page.get_by_test_id(f"export-{form}").click()
    file = folder / saved.value.suggested_filename
    saved.value.save_as(file)
    return file
