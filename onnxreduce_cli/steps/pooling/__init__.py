"""Pools, and MaxUnpool and Col2Im, which put windows back into an image."""
