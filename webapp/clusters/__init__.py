"""Clusters that people draw, name and keep."""
