"""Around each of eleven thousand tests, pytest-django does nothing that no test here needs.

Left out of its fixtures are those for the markers `urls`, `ignore_template_errors` and `django_isolate_apps`,
for sites, e-mail, a live server and Django's own test classes: who needs one takes its name from `UNUSED`.
"""

from __future__ import annotations

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
