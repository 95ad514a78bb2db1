"""Runs a model in ncnn, converted by pnnx."""

import os
import re
import subprocess
import sys

import ncnn
import numpy as np
import pnnx

model, inputs, outputs = sys.argv[1:]
arrays = dict(np.load(inputs))
stem = model.removesuffix(".onnx")
shapes = ",".join(str(list(array.shape)).replace(" ", "") + "f32" for array in arrays.values())
subprocess.run(
    [pnnx.EXEC_PATH, model, f"inputshape={shapes}", "fp16=0"],
    check=True,
    cwd=os.path.dirname(model),
)
# Which dimension is the batch's, that ncnn has none for, is said in the script written beside.
with open(f"{stem}_ncnn.py", encoding="utf-8") as file:
    script = file.read()
batch_of = {
    name: int(at) for name, at in re.findall(r"Mat\((\w+)\.numpy\(.*batch_index=(\d+)", script)
}
batch_of |= {name: int(at) for name, at in re.findall(r"(\w+)\.numpy\(batch_index=(\d+)", script)}
net = ncnn.Net()
net.opt.use_fp16_packed = net.opt.use_fp16_storage = net.opt.use_fp16_arithmetic = False
net.opt.use_vulkan_compute, net.opt.num_threads = False, 1
if net.load_param(f"{stem}.ncnn.param") or net.load_model(f"{stem}.ncnn.bin"):
    sys.exit("not loaded")
with net.create_extractor() as extractor:
    for name, array in zip(sorted(net.input_names()), arrays.values(), strict=True):
        data = np.ascontiguousarray(array)
        extractor.input(name, ncnn.Mat(data, batch_index=batch_of[name]).clone())
    found = {}
    for index, name in enumerate(sorted(net.output_names())):
        code, mat = extractor.extract(name)
        if code:
            sys.exit("not computed")
        found[str(index)] = np.array(mat.numpy(batch_index=batch_of[name]))
np.savez(outputs, **found)
