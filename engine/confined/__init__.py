"""Calls that are killed at a limit of time or memory: for whatever reads a file that somebody sent."""

from engine.confined.call import Confined, pids, start_server

__all__ = ["Confined", "pids", "start_server"]
