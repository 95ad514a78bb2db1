"""Edits of a whole model, at its own opset, after which more of its nodes get to the target.

Each is taken only where nodes block without it. The model that is given is never touched: what a
pass gives is a copy, or says what a copy would be.
"""
