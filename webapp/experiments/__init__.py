"""Experiments on the server: stored, frozen when they start, carried out by workers, analysed."""
