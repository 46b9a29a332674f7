"""Django's name for this app."""

from django.apps import AppConfig


class AccountsConfig(AppConfig):
    name = "webapp.accounts"
    label = "accounts"

    def ready(self) -> None:
        from webapp.accounts import audit  # noqa: F401  (connects to the signals of log-ins)
