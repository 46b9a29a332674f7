"""Advice: how every strategy would do on a cluster, why, and which single change would help most. Pure."""
