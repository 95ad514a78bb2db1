"""Edits of a whole model, at its source opset, after which more of its nodes can be converted.

Each is taken only where nodes block without it. The model that is given is never touched: what a
pass gives is a copy, or says what a copy would be.
"""
