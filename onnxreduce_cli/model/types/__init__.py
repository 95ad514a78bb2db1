"""What is known of the values of a model before it runs: types, shapes, constants.

`facts.Facts` answers for a model as it is given, and, extended, for the values that a conversion
adds to it. Nothing else here is asked from outside.
"""
