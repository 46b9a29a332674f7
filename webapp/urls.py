"""HTTP paths. What is not an API call, the administration or a file belongs to the front end."""

from __future__ import annotations

from django.conf import settings
from django.contrib import admin
from django.urls import include, path, re_path

from webapp.api import api
from webapp.http.pages import index, unknown_api
from webapp.manual import views as manual
from webapp.operations import metrics, probes

handler400 = "webapp.http.pages.bad_request"
handler403 = "webapp.http.pages.forbidden"
handler404 = "webapp.http.pages.not_found"
handler500 = "webapp.http.pages.broken"

admin.site.site_header = admin.site.site_title = "EdgeLoom administration"

urlpatterns = [
    path("healthz", probes.all_needed),
    path("healthz/web", probes.web),
    path("healthz/<str:part>", probes.one),
    path("metrics", metrics.metrics),
    path("api/", api.urls),
    re_path(r"^api/", unknown_api),
    path("admin/", admin.site.urls),
    *([path("sso/", include("webapp.accounts.openid"))] if settings.OIDC_ISSUER else []),
    path("v1/", include("webapp.serving.urls")),
    path("docs/", manual.page),
    path("docs/<path:address>", manual.page),
    re_path(r"^(?!api/|v1/|ws/|static/|admin/).*$", index, name="index"),
]
