"""The web application: Django serves, Channels streams, Celery works, Redis carries."""
