"""Running EdgeLoom as a service: the machines page, probes, metrics, backups, and their commands."""
