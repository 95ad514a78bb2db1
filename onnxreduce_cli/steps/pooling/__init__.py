"""Pools, and what puts windows back in place."""
