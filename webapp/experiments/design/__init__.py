"""What the form of an experiment offers, what its names mean, and how large one may be."""
