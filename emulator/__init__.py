"""Makes a cluster real on this machine: Mininet network, shaped links, private namespaces, calibration.

The entry point is `emulate`; `session` runs `engine.runs.execute` over a `MininetNetwork`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from emulator.session.client import emulate, expect_emulations

__all__ = ["emulate", "expect_emulations"]


def __getattr__(name: str) -> Any:
    """Imported when first used: the processes of sessions need none of what asks for them."""
    if name not in __all__:
        raise AttributeError(f"module 'emulator' has no attribute {name!r}")
    return getattr(import_module("emulator.session.client"), name)
