"""Runs a model in ONNX Runtime Web (WebAssembly), by Node.js."""

import base64
import json
import os
import subprocess
import sys

import numpy as np

PROGRAM = """
const [folder, model] = process.argv.slice(1);
// Where there is a fetch older versions take a file's path for a URL.
delete globalThis.fetch;
const ort = require(folder + "/node_modules/onnxruntime-web");
ort.env.wasm.numThreads = 1;
const given = JSON.parse(require("fs").readFileSync(0, "utf8"));
const feeds = {};
for (const [name, { dims, data }] of Object.entries(given)) {
  const bytes = new Uint8Array(Buffer.from(data, "base64"));
  feeds[name] = new ort.Tensor("float32", new Float32Array(bytes.buffer), dims);
}
const options = { executionProviders: ["wasm"] };
ort.InferenceSession.create(require("fs").readFileSync(model), options)
  .then(async (session) => {
    const found = await session.run(feeds);
    const tensors = session.outputNames.map((name) => found[name]);
    const told = tensors.map((item) => ({ dims: item.dims, data: Array.from(item.data, String) }));
    console.log("RESULT " + JSON.stringify(told));
    process.exit(0);
  })
  .catch((error) => { console.error(error); process.exit(1); });
"""

model, inputs, outputs = sys.argv[1:]
feeds = {
    name: {"dims": array.shape, "data": base64.b64encode(array.tobytes()).decode()}
    for name, array in np.load(inputs).items()
}
command = ["node", "-e", PROGRAM, os.environ["PYTHONPATH"], model]
done = subprocess.run(command, input=json.dumps(feeds), capture_output=True, text=True, check=True)
line = next(line for line in done.stdout.splitlines() if line.startswith("RESULT "))
told = json.loads(line[len("RESULT ") :])
arrays = [np.array([float(text) for text in item["data"]], np.float32) for item in told]
shaped = [array.reshape(item["dims"]) for array, item in zip(arrays, told, strict=True)]
np.savez(outputs, **{str(index): array for index, array in enumerate(shaped)})
