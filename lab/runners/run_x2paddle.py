"""Runs a model in Paddle Inference, converted by X2Paddle."""

import os
import subprocess
import sys

import numpy as np

model, inputs, outputs = sys.argv[1:]
folder = model + ".paddle"
code = "from x2paddle.convert import main; main()"
command = [
    "--framework=onnx",
    f"--model={model}",
    f"--save_dir={folder}",
    "--disable_feedback=True",
]
subprocess.run([sys.executable, "-c", code, *command], check=True)

from paddle import inference  # noqa: E402

stem = os.path.join(folder, "inference_model", "model")
config = inference.Config(stem + ".pdmodel", stem + ".pdiparams")
config.disable_gpu()
config.switch_ir_optim(False)
predictor = inference.create_predictor(config)
arrays = dict(np.load(inputs))
names = predictor.get_input_names()
for index, name in enumerate(names):
    array = arrays.get(name, list(arrays.values())[index])
    handle = predictor.get_input_handle(name)
    handle.reshape(array.shape)
    handle.copy_from_cpu(array)
predictor.run()
found = [predictor.get_output_handle(name).copy_to_cpu() for name in predictor.get_output_names()]
np.savez(outputs, **{str(index): array for index, array in enumerate(found)})
