"""Conversion of many models, each by itself, which can be resumed after a run that ended early."""
