"""Around each of eleven thousand tests, pytest and its plugins do nothing that no test here needs.

Left out of pytest-django's fixtures are those for the markers `urls`, `ignore_template_errors` and
`django_isolate_apps`, for sites, e-mail, a live server and Django's own test classes: who needs one takes its
name from `UNUSED`. And what a test logs is caught at the root of all loggers; pytest also looks for those
that do not pass on what they get, six times for each test, and finds sixty of torch's.
"""

from __future__ import annotations

import logging

import _pytest.logging
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


class CaughtAtTheRoot(_pytest.logging.catching_logs[logging.Handler]):
    __slots__ = ()

    def __enter__(self) -> logging.Handler:
        root = logging.getLogger()
        root.addHandler(self.handler)
        self.attached_loggers.append(root)
        if self.level is not None:
            self.handler.setLevel(self.level)
            self.orig_level = root.level
            root.setLevel(min(self.orig_level, self.level))
        return self.handler


_pytest.logging.catching_logs = CaughtAtTheRoot  # type: ignore[misc,assignment]
