"""Operators that make, reshape, cut or join tensors without computing their elements."""
