"""What is known of the values of a model before it runs: types, shapes, constants.

`facts.Facts` answers for a model as it is given, `conversion_facts.ConversionFacts` for the same
with the values that a conversion adds. Nothing else here is imported from outside.
"""
