"""Operators on strings and on n-grams."""
