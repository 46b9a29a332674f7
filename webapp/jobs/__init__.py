"""Work that waits for a worker, whatever it is: who takes it, and what becomes of it when that is gone."""
