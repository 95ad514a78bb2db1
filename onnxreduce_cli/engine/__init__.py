"""The engine: takes every node of a model across its boundaries, and edits the model at the end."""
