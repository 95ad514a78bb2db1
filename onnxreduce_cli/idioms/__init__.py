"""Composite operators as exporters write them in simpler ones, so that runtimes recognise them.

An idiom is one function, its definition, written with a `Writer`. Steps and `--expand` write it out
(`expansion.py`); `--contract` traces it into a pattern (`tracing.py`) and looks for that in a model
(`matching.py`). Definitions are in modules by what they are for; `registry.py` lists them.
"""
