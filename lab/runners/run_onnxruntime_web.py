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
const arrays = {
  float32: Float32Array, float64: Float64Array, float16: Uint16Array, bool: Uint8Array,
  int8: Int8Array, uint8: Uint8Array, int32: Int32Array, int64: BigInt64Array,
};
for (const [name, { dims, dtype, data }] of Object.entries(given)) {
  const bytes = new Uint8Array(Buffer.from(data, "base64"));
  feeds[name] = new ort.Tensor(dtype, new arrays[dtype](bytes.buffer), dims);
}
const options = { executionProviders: ["wasm"] };
ort.InferenceSession.create(require("fs").readFileSync(model), options)
  .then(async (session) => {
    const found = await session.run(feeds);
    const tensors = session.outputNames.map((name) => found[name]);
    const told = tensors.map(({ dims, type, data }) => {
      const bytes = Buffer.from(data.buffer, data.byteOffset, data.byteLength);
      return { dims, dtype: type, data: bytes.toString("base64") };
    });
    // What is not yet in the pipe is lost when it exits.
    process.stdout.write("RESULT " + JSON.stringify(told) + "\\n", () => process.exit(0));
  })
  .catch((error) => { console.error(error); process.exit(1); });
"""

model, inputs, outputs = sys.argv[1:]
feeds = {
    name: {
        "dims": array.shape,
        "dtype": array.dtype.name,
        "data": base64.b64encode(array.tobytes()).decode(),
    }
    for name, array in np.load(inputs).items()
}
command = ["node", "-e", PROGRAM, os.environ["PYTHONPATH"], model]
done = subprocess.run(command, input=json.dumps(feeds), capture_output=True, text=True, check=True)
line = next(line for line in done.stdout.splitlines() if line.startswith("RESULT "))
told = json.loads(line[len("RESULT ") :])
arrays = [
    np.frombuffer(base64.b64decode(item["data"]), item["dtype"]).reshape(item["dims"])
    for item in told
]
np.savez(outputs, **{str(index): array for index, array in enumerate(arrays)})
