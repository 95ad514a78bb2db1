"""Sequences and optional values of a model, written out as tensors.

Older opsets lack them, or do not let them into and out of graphs within graphs. Nodes cannot be
taken there one by one, as all that make and read such a value must agree on what stands for it: so
a whole model is rewritten, at its own opset, before its nodes are converted.
"""
