"""Benchmarks of the emulation: how accurate it is, and how fast it starts and reacts."""
