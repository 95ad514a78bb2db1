"""Runs a model in nncase's simulator, compiled for the CPU."""

import sys

import nncase
import numpy as np

model, inputs, outputs = sys.argv[1:]
options = nncase.CompileOptions()
options.target = "cpu"
compiler = nncase.Compiler(options)
with open(model, "rb") as file:
    compiler.import_onnx(file.read(), nncase.ImportOptions())
compiler.compile()
simulator = nncase.Simulator()
simulator.load_model(compiler.gencode_tobytes())
for index, array in enumerate(np.load(inputs).values()):
    simulator.set_input_tensor(index, nncase.RuntimeTensor.from_numpy(array))
simulator.run()
found = {
    str(index): simulator.get_output_tensor(index).to_numpy()
    for index in range(simulator.outputs_size)
}
np.savez(outputs, **found)
