"""Comparing values, and judging outcomes of models in executors."""
