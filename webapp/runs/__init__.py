"""Runs: asked for over HTTP, carried out by workers, watched over WebSockets, kept as reports."""
