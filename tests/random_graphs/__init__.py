"""Random valid models: the family in all its forms inside ordinary graphs, converted and judged.

python -m tests.random_graphs --count 20000 --seed 1
python -m tests.random_graphs --options --count 20000 --seed 1
"""
