"""The advisor and the showcases: what to try on a cluster."""
