"""Entry point of the web server: HTTP goes to Django, WebSockets to the consumers."""

from __future__ import annotations

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")
# Django must be ready before the consumers are imported: they need its models.
http = get_asgi_application()

from channels.routing import ProtocolTypeRouter, URLRouter  # noqa: E402

from webapp.accounts.body_limit import BodyLimit  # noqa: E402
from webapp.accounts.sockets import Guard  # noqa: E402
from webapp.runs.consumers import websocket_paths  # noqa: E402

application = ProtocolTypeRouter(
    {
        "http": BodyLimit(http),
        "websocket": Guard(URLRouter(websocket_paths)),
    }
)
