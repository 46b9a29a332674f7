"""The server's addresses as they are with an OpenID provider."""

from __future__ import annotations

from django.urls import include, path

from webapp import urls
from webapp.urls import handler400, handler403, handler404, handler500  # noqa: F401  (Django looks for them)

urlpatterns = [path("sso/", include("webapp.accounts.openid")), *urls.urlpatterns]
