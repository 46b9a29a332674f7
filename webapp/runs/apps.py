"""Django's name for this app, and its kind of job."""

from django.apps import AppConfig


class RunsConfig(AppConfig):
    name = "webapp.runs"
    label = "runs"

    def ready(self) -> None:
        from webapp.jobs import queue
        from webapp.runs import closing
        from webapp.runs.models import Run

        queue.register(Run, closing.settle)
