"""A chat template rendered where a run that serves renders it: in a process that a session starts."""

from engine.domain.spec import WeightsRef
from engine.models import catalogue
from engine.models.inputs.chat import chat_tokens


def number_of_tokens(directory: str) -> int:
    """Of a conversation of one message, by the template in `directory`. Raises `SpecError`."""
    model, _ = catalogue.resolve("demo-lm")
    weights = WeightsRef(kind="directory", directory=directory)
    return len(chat_tokens(model, weights, [{"role": "user", "content": "hello"}], 1000) or ())
