"""Sequences and optional values of a model, written out as tensors.

Older opsets lack them, or do not allow them as inputs and outputs of subgraphs. Nodes cannot be
converted one by one there, as all nodes that compute or read such a value must agree on the tensors
that represent it. So the whole model is rewritten at its own opset, before nodes are converted.
"""
