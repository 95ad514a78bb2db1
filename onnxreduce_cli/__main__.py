"""`python -m onnxreduce_cli` is `onnxreduce`."""

from onnxreduce_cli.cli.program import program

program()
