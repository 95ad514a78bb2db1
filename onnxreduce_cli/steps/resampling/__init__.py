"""Operators that read an image between its elements."""
