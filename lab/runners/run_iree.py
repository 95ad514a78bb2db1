"""Runs a model in IREE, compiled for the CPU."""

import subprocess
import sys

import iree.compiler as compiler
import iree.runtime as runtime
import numpy as np

model, inputs, outputs = sys.argv[1:]
subprocess.run(
    [sys.executable, "-m", "iree.compiler.tools.import_onnx", model, "-o", model + ".mlir"],
    check=True,
)
try:
    made = compiler.compile_file(
        model + ".mlir",
        target_backends=["llvm-cpu"],
        input_type="onnx",
        extra_args=["--iree-llvmcpu-target-cpu=host"],
    )
except compiler.CompilerToolError as error:
    # It ends with the whole command.
    lines = str(error).splitlines()
    sys.exit(next((line for line in lines if "error:" in line), lines[-1]))
config = runtime.Config("local-task")
context = runtime.SystemContext(config=config)
module = runtime.VmModule.copy_buffer(context.instance, made)
context.add_vm_module(module)
name = next(name for name in module.function_names if not name.startswith("__") and "$" not in name)
found = context.modules[module.name][name](*np.load(inputs).values())
found = found if isinstance(found, (list, tuple)) else [found]
np.savez(outputs, **{str(index): np.asarray(item) for index, item in enumerate(found)})
