"""Layers of neural networks that are no mere arithmetic."""
