"""Transformer models: the catalogue, families, weights, inputs and reference results."""
