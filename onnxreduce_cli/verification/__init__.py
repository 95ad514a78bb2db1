"""Comparing models: whether two compute the same, and whether executors agree on one."""
