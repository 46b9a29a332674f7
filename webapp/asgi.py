"""Entry point of the web server: HTTP goes to Django, WebSockets to the consumers."""

from __future__ import annotations

import os

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")
# Django must be ready before the rest is imported: the consumers need its models.
django.setup(set_prefix=False)

from channels.routing import ProtocolTypeRouter, URLRouter  # noqa: E402
from django.urls import re_path  # noqa: E402

from webapp.accounts.sockets import Guard, nowhere  # noqa: E402
from webapp.clusters.node_socket import node_paths  # noqa: E402
from webapp.events.consumers import websocket_paths  # noqa: E402
from webapp.http import uploads  # noqa: E402
from webapp.http.body_limit import BodyLimit  # noqa: E402
from webapp.http.handler import OneThreadHandler  # noqa: E402

uploads.begin()
of_people = Guard(URLRouter([*websocket_paths, re_path("", nowhere)]))  # type: ignore[arg-type]
application = ProtocolTypeRouter(
    {
        "http": BodyLimit(OneThreadHandler()),
        "websocket": URLRouter([*node_paths, re_path("", of_people)]),  # type: ignore[arg-type]
    }
)
