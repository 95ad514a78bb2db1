"""The gate: one pass over a model that was loaded, which looks at each node by itself.

What passes has names that are text, nodes with as many inputs and outputs as their operators
allow, attributes of the kinds that their operators define with a value of that kind, tensors whose
data fits their dimensions, graphs within nodes with the inputs and outputs that the node gives
them, and functions that do not call themselves. What only types, shapes and constants tell, or the
text of a definition, it does not know: see CONTRIBUTING.md. What `onnx.checker` refuses beyond
that, such as a graph without a name, steps need not care for.
"""
