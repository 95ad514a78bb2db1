"""`python -m onnxreduce_cli` is `onnxreduce`."""

from onnxreduce_cli.cli.main import program

program()
