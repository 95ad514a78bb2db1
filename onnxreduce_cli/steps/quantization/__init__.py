"""Quantized tensors and what computes with them."""
