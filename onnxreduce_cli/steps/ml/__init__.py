"""Steps of ai.onnx.ml: the operators of classical machine learning that changed in it.

Their boundaries are versions of that domain, not of the default one.
"""
