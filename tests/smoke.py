"""What an installation must be able to do, run by it: `python tests/smoke.py MODEL...`."""

from __future__ import annotations

import json
import subprocess
import sys
import sysconfig
from importlib.resources import files
from pathlib import Path

import onnxreduce

models = sys.argv[1:]
installed = Path(sysconfig.get_path("purelib"))
assert Path(onnxreduce.__file__).is_relative_to(installed), onnxreduce.__file__

command = str(Path(sysconfig.get_path("scripts"), "onnxreduce"))
for arguments in (
    ["--version"],
    ["ops", "ReduceSum"],
    ["targets", "opencv"],
    *(["inspect", model] for model in models),
    ["convert", *models, "--for", "onnxruntime==1.8", "--verify", "--out-dir", "out", "--force"],
):
    done = subprocess.run([command, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, (arguments, done.stdout, done.stderr)
    assert done.stdout, arguments
schema = files("onnxreduce_cli.report") / "schemas" / "1" / "convert.json"
assert json.loads(schema.read_text())["$id"] == "urn:onnxreduce:report:1:convert"
assert len(list(Path("out").glob("*.onnx"))) == len(models)

for model in models:
    moved = onnxreduce.convert(model, 11)
    assert onnxreduce.verify(model, moved, trials=1).exit_code == 0, model
