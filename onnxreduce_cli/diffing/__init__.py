"""The differences of two models as graphs, as data.

Equal values of both models get the same name (`aligning`). Then nodes are compared, and the nodes
that replace a node are found by following values (`nodes`). Tensors are compared by their content,
wherever it is stored (`content`).
"""
