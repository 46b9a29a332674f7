"""The tables and figures of five papers as experiments: published figures, clusters, claims and results."""
