"""The addresses below /v1/."""

from __future__ import annotations

from django.urls import path, re_path

from webapp.serving import views

urlpatterns = [
    path("completions", views.completions),
    path("chat/completions", views.chat_completions),
    path("models", views.models),
    re_path(r"^models/(.+)$", views.model),
    re_path(r"^(.*)$", views.unknown),
]
