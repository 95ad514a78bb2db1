"""Inputs of models: drawn, or read from files."""
