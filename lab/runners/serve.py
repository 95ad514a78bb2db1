"""Runs a script for one model after another, each in a fork: ``SCRIPT SECONDS``.

What the script begins with, up to where it looks at its arguments, is done once: importing a
runtime mostly takes longer than a model. A line of the input is a folder with model.onnx and
inputs.npz, and the answer the status of the process that has run the script there, as of
`os.waitpid`. What it said is in the folder's said.txt then.
"""

import ast
import contextlib
import itertools
import os
import runpy
import signal
import sys
import traceback

script, seconds = sys.argv[1], int(sys.argv[2])


def run(folder: str) -> int:
    """Run the script for a folder, in this process; return its exit code."""
    os.setsid()
    os.chdir(folder)
    os.environ["HOME"] = folder
    said = os.open("said.txt", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(said, 1)
    os.dup2(said, 2)
    # Nothing handles it: the process ends, whatever it is at.
    signal.alarm(seconds)
    names = ("model.onnx", "inputs.npz", "outputs.npz")
    sys.argv = [script, *(os.path.join(folder, name) for name in names)]
    try:
        runpy.run_path(script, run_name="__main__")
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        # Of whatever class: it is the runtime's, and the reason why it refuses the model.
        traceback.print_exc()
        return 1
    return 0


# What a runtime prints while it is imported is no answer.
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
with open(script, encoding="utf-8") as file:
    tree = ast.parse(file.read())
above = list(itertools.takewhile(lambda node: "argv" not in ast.dump(node), tree.body))
exec(compile(ast.Module(above, []), script, "exec"), {})
for line in iter(sys.stdin.readline, ""):
    child = os.fork()
    if not child:
        code = run(line.rstrip("\n"))
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    status = os.waitpid(child, 0)[1]
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)  # What it has started may be at work still.
    print(status, file=answers, flush=True)
