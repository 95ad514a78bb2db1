"""Makers of `onnxreduce_cli/targets/data/operators/`: one module for each format of a source.

Each is run by hand, `python -m lab.operators.tensorrt FOLDER`, with a clone of the repository that
it reads, and writes the files of its runtimes anew. Facts are put in words of our own: what a
source says is not copied. An operator that no onnx defines fails, unless the maker names it.
"""
