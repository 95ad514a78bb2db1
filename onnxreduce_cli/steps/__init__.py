"""Steps: crossing one boundary of one operator, up or down.

Each module holds one group of operators, with the step up and the step down of each boundary side
by side, and registers them when it is imported: see `loading`.
"""
