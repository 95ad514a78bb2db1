"""Runs models in the onnxruntime of the Python that runs this; Python 3.8 must read it.

    python runtime_child.py FOLDER

Each NAME.onnx in the folder is run on NAME.npz. Its outputs go to NAME.out.npz, by their places;
why it cannot be loaded or run goes to NAME.error.
"""

import sys
from pathlib import Path

import numpy as np
import onnxruntime as ort


def main(folder: Path) -> None:
    """Run all models of a folder."""
    ort.set_default_logger_severity(4)
    for path in sorted(folder.glob("*.onnx")):
        try:
            session = ort.InferenceSession(str(path), providers=["CPUExecutionProvider"])
            with np.load(path.with_suffix(".npz")) as feeds:
                outputs = session.run(None, dict(feeds))
        except Exception as error:
            # onnxruntime's errors have no other class in common.
            path.with_suffix(".error").write_text(str(error), encoding="utf-8")
        else:
            places = {str(place): value for place, value in enumerate(outputs)}
            np.savez(path.with_suffix(".out.npz"), **places)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
