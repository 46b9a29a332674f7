"""Around each of eleven thousand tests, pytest-django does nothing that no test here needs.

Left out of its fixtures are those for the markers `urls`, `ignore_template_errors` and `django_isolate_apps`,
for sites, e-mail, a live server and Django's own test classes: who needs one takes its name from `UNUSED`.

pytest catches what a test logs at the root and at each logger that passes nothing on, six times a test: torch
has sixty of those. Here they pass it on.
"""

from __future__ import annotations

import logging

import pytest_django.plugin

UNUSED = (
    "_dj_autoclear_mailbox",
    "_django_clear_site_cache",
    "_django_isolate_apps",
    "_django_set_urlconf",
    "_django_setup_unittest",
    "_fail_for_invalid_template_variable",
    "_live_server_helper",
    "_template_string_if_invalid_marker",
    "live_server",
)
for name in UNUSED:  # pytest looks for a plugin's fixtures later, when its session begins
    delattr(pytest_django.plugin, name)


def pytest_collection_finish() -> None:
    for name, logger in logging.root.manager.loggerDict.items():
        if name.partition(".")[0] == "torch" and isinstance(logger, logging.Logger):
            logger.propagate = True
