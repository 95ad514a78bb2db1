"""What differs between two models as graphs, as data.

The second model's values get the first one's names where both are the same (`aligning`), then nodes
are compared, and those that take the place of others are found by the values between them
(`nodes`). Tensors are compared by their content, wherever that is stored (`content`).
"""
