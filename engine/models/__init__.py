"""Transformers as data: a spec, its operations with their costs, its weights slice by slice."""
