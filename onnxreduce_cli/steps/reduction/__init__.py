"""Reduce*, Softmax, LogSoftmax and Hardmax."""
