"""Operators that look up, put, sort or select elements by their indices."""
