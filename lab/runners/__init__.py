"""One script for each runtime, run by its Python: ``SCRIPT MODEL INPUTS OUTPUTS``.

INPUTS and OUTPUTS are .npz files of arrays: the inputs by name, the outputs as ``0``, ``1``, ...
A script that ends with another exit code than 0 has refused the model.
"""
