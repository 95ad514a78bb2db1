"""Emitting nodes in steps: contexts with their builders, numbers, shapes, loops."""
