"""Requests to runs that serve: /v1 in the form of OpenAI's API, and the same for the live page."""
