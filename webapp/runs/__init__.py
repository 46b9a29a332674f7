"""Runs: requested over HTTP, carried out by workers, followed over WebSockets, stored with their reports."""
