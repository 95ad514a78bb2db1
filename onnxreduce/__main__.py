"""`python -m onnxreduce` is `onnxreduce`."""

from onnxreduce_cli.cli.main import program

program()
