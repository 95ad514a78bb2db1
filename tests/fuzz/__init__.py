"""Broken models: whatever is in a file, a command ends as documented and writes all or nothing.

python -m tests.fuzz --seconds 60                 # a new seed, printed
python -m tests.fuzz --seed 7 --count 10000 --record fuzz.json    # goes on where it stopped
python -m tests.fuzz --seed 7 --only 123          # one mutant again, kept as mutant.onnx
"""
