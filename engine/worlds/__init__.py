"""The two worlds: `simulated` (virtual clock, no numbers) and `real` (torch, sockets, paced)."""
