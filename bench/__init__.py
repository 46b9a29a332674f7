"""Measures EdgeLoom itself; nothing of the product imports it, and the wheel does not have it."""
