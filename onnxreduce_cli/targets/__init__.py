"""Runtimes: which opsets they take, and what they get wrong, as data with its sources.

`data/` has one file for each runtime. Adding one touches no code.
"""
