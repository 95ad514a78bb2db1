"""`python -m onnxreduce` is `onnxreduce`."""

from onnxreduce_cli.cli.program import program

program()
