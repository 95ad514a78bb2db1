"""Passes: edits of a whole model at its own opset.

Some run where nodes block without them (sequences, inlining, specialisation): they leave the model
as it is, and return an edited copy or a plan of one. The others (dtypes, static shapes) are for
options of the user, and edit the model in place.
"""
