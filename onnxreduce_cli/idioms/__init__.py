"""Idioms: composite operators written out the way exporters do, so that runtimes recognise them.

The definition of an idiom is one function, written with a `Writer`. Steps and `--expand` write it
out (`expansion.py`); `--contract` traces it into a pattern (`tracing.py`) and searches models for
that (`matching.py`). Definitions are grouped in modules by subject; `registry.py` lists them.
"""
