"""The same input gives the same bytes and the same verdict, whatever the process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

OWN = Path(__file__).parent / "data" / "models"

#: Python orders sets of texts by a hash that is another in each process, unless told otherwise.
_CONVERT = """
import hashlib, pathlib, sys
from dataclasses import replace
import onnx
from onnxreduce_cli.api.checks import check_sites
from onnxreduce_cli.engine.conversion import Conversion
from onnxreduce_cli.engine.options import Options
for path in sorted(pathlib.Path(sys.argv[1]).glob("*.onnx")):
    for target in (9, 13, 21):
        model = onnx.load(path)
        conversion = Conversion(model, target, Options(emulate=True))
        print(path.name, target, [str(blocker) for blocker in conversion.blockers])
        if not conversion.blockers:
            checked = check_sites(conversion)
            each = tuple(replace(site, seconds=0.0) for site in checked.each)
            print("checked", replace(checked, each=each).to_dict())
            conversion.apply()
            print(hashlib.sha256(model.SerializeToString()).hexdigest())
"""


def test_the_order_of_sets_decides_nothing() -> None:
    outputs = []
    for seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", _CONVERT, str(OWN)],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        )
        outputs.append(done.stdout)
    assert outputs[0].count("\nchecked {") >= 11
    assert outputs[0] == outputs[1]
