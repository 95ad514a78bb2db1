"""The gate: one pass over a loaded model, which checks each node by itself.

What passes has names that are text, nodes with as many inputs and outputs as their operators
allow, attributes of the kinds that their operators define with a value of that kind, tensors whose
data fits their dimensions, graphs within nodes with the inputs and outputs that the node gives
them, and functions that do not call themselves. It checks nothing that depends on
types, shapes and constants, or that only the text of a definition says: see CONTRIBUTING.md. What
`onnx.checker` refuses beyond that, such as a graph without a name, does not matter to steps.
"""
