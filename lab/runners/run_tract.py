"""Runs a model in tract."""

import sys

import numpy as np
import tract

model, inputs, outputs = sys.argv[1:]
reader = tract.onnx()
loaded = reader.model_for_path(model) if hasattr(reader, "model_for_path") else reader.load(model)
if hasattr(loaded, "into_optimized"):
    ready = loaded.into_optimized().into_runnable()
else:
    ready = loaded.into_model().into_runnable()
found = ready.run(list(np.load(inputs).values()))
np.savez(outputs, **{str(index): item.to_numpy() for index, item in enumerate(found)})
