"""The science of EdgeLoom: values, models, strategies, the two worlds, reports.

Nothing in here imports the web application, the emulator, Django or Mininet.
"""
