"""Distribution strategies: one file and one registry line each."""
