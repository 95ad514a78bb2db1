"""Operators that subtract a mean and divide by a deviation."""
