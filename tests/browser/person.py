"""A person in a browser, whose actions are counted."""

from __future__ import annotations

from playwright.sync_api import Page


class Person:
    """Clicks and types, and counts each as one action."""

    def __init__(self, page: Page):
        self.page = page
        self.actions = 0

    def click(self, test_id: str) -> None:
        self.page.get_by_test_id(test_id).first.click()
        self.actions += 1

    def fill(self, test_id: str, text: str) -> None:
        self.page.get_by_test_id(test_id).fill(text)
        self.actions += 1

    def choose(self, test_id: str, option: str) -> None:
        """Open a list and take one of it: two actions."""
        self.click(test_id)
        self.page.get_by_role("option", name=option, exact=True).click()
        self.actions += 1

    def follow(self, test_id: str) -> None:
        """Click the first link in a card."""
        self.page.get_by_test_id(test_id).get_by_role("link").first.click()
        self.actions += 1
