"""The science of EdgeLoom: values, models, strategies, the two worlds, reports.

The engine imports neither the web application nor the emulator, Django or Mininet.
"""
