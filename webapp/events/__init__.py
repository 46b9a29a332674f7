"""The events of runs: published as they happen, kept for good, and read again from any point on."""
