"""Operators of floats that ONNX Runtime's optimiser puts in place of several others."""
