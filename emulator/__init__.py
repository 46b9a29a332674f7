"""Makes a cluster real on this machine: Mininet network, shaped links, private namespaces, calibration.

The entry point is `emulate`; `session` runs `engine.runs.execute` over a `MininetNetwork`.
"""

from emulator.session.client import emulate, expect_emulations

__all__ = ["emulate", "expect_emulations"]
