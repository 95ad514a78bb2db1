"""Runs a model in Paddle, converted by X2Paddle."""

import os
import runpy
import subprocess
import sys

import numpy as np
import paddle

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

# Not the model saved for inference: without weights it is none that Paddle loads.
main = runpy.run_path(os.path.join(folder, "x2paddle_code.py"))["main"]
found = main(*map(paddle.to_tensor, np.load(inputs).values()))
found = found if isinstance(found, (list, tuple)) else [found]
np.savez(outputs, **{str(index): tensor.numpy() for index, tensor in enumerate(found)})
