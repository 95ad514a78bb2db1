"""What messages say to type works when it is typed."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import onnx
import pytest

import onnxreduce_cli

#: Models by the name of the file that a command gets.
MODELS = {
    "mean.onnx": """<ir_version: 8, opset_import: ["" : 18]>
        g (float[2,3] x) => (float[2] y) <int64[1] axes = {1}> {
            a = ReduceMean<keepdims = 0>(x, axes) y = Relu(a)
        }""",
    "scatter.onnx": """<ir_version: 8, opset_import: ["" : 18]>
        g (float[4,3] x, int64[2,1] i, float[2,3] u) => (float[4,3] y) {
            y = ScatterND<reduction = "max">(x, i, u)
        }""",
    "cumsum.onnx": """<ir_version: 8, opset_import: ["" : 14]>
        g (float[N] x) => (float[N] y) <int64 axis = {0}> { y = CumSum(x, axis) }""",
    "gelu.onnx": """<ir_version: 9, opset_import: ["" : 20]>
        g (float[2] x) => (float[2] y) { y = Gelu(x) }""",
    "sequence.onnx": """<ir_version: 8, opset_import: ["" : 17]>
        g (float[2] x) => (float[2] y) {
            s = SequenceConstruct(x, x) i = Constant<value_int = 1>() y = SequenceAt(s, i)
        }""",
    "function.onnx": """<ir_version: 10, opset_import: ["" : 18, "local" : 1]>
        g (float[2,3] x) => (float[2,1] y) { y = local.F(x) }
        <domain: "local", opset_import: ["" : 18]>
        F (a) => (b) { i = Constant<value_ints = [1]>() b = ReduceMean(a, i) }""",
    "microsoft.onnx": """<ir_version: 8, opset_import: ["" : 18, "com.microsoft" : 1]>
        g (float[2,2] x) => (float[2,2] y) { m = com.microsoft.FusedMatMul(x, x) y = Relu(m) }""",
    "newer.onnx": """<ir_version: 14, opset_import: ["" : 18]>
        g (float[2] x) => (float[2] y) { y = Relu(x) }""",
    "own.onnx": """<ir_version: 8, opset_import: ["other" : 1]>
        g (float[N] x) => (float[N] y) { y = other.Own(x) }""",
    "unknown.onnx": """<ir_version: 8, opset_import: ["" : 18, "my.ops" : 1]>
        g (float[2,3] x) => (z) { y = my.ops.Foo(x) z = Relu(y) }""",
    "bfloat16.onnx": """<ir_version: 8, opset_import: ["" : 18]>
        g (bfloat16[2,3] x) => (bfloat16[1,1] y) { y = ReduceMax(x) }""",
    "max.onnx": """<ir_version: 8, opset_import: ["" : 18]>
        g (float[N,4] x) => (float[N,4] y) {
            z = Constant <value_float = 0.0> () y = Max (x, z)
        }""",
    "where.onnx": """<ir_version: 8, opset_import: ["" : 18]>
        g (float[N,4] x) => (float[N,4] y) {
            z = Constant <value_float = 0.0> () c = Greater (x, z) y = Where (c, x, z)
        }""",
    "encoder.onnx": """<ir_version: 8, opset_import: ["" : 15, "ai.onnx.ml" : 2]>
        g (int64[3] x) => (string[3] y) {
            y = ai.onnx.ml.LabelEncoder<keys_int64s = [5, 7], values_strings = ["a", "b"]>(x)
        }""",
    "large.onnx": """<ir_version: 8, opset_import: ["" : 17]>
        g (float[2] x) => (float[2] y) <float[2] c = {300, 300}> {
            [big] b = Mul(c, c) [root] r = Sqrt(b) y = Add(x, r)
        }""",
    "branch.onnx": """<ir_version: 8, opset_import: ["" : 17]>
        g (float[2,3] x) => (float[2,3] y) {
            c = Constant<value = bool {1}>()
            y = If(c) <
                then_branch = a () => (float[2,3] t) { t = Relu(x) },
                else_branch = b () => (float[2,3] e) <int64[1] first = {0}> {
                    q = Squeeze(x, first) e = Relu(q)
                }
            >
        }""",
    "index.onnx": """<ir_version: 8, opset_import: ["" : 18]>
        g (int64[2] i) => (int64[2] y) { y = Mul(i, i) }""",
    "local.onnx": """<ir_version: 8, opset_import: ["" : 18, "local" : 1]>
        g (int64[2] x) => (int64[2] y) { y = local.F(x) }
        <domain: "local", opset_import: ["" : 18]>
        F (a) => (b) { b = Mul(a, a) }""",
    "range.onnx": """<ir_version: 8, opset_import: ["" : 18]>
        g (float[N,3] x) => (int64[K] y) <int64[1] zero = {0}, int64[1] one = {1}> {
            s = Shape(x) n = Gather(s, zero) h = Squeeze(n) f = Squeeze(zero) b = Squeeze(one)
            y = Range(f, h, b)
        }""",
    "hardmax.onnx": """<ir_version: 8, opset_import: ["" : 13]>
        g (float[N,M] x) => (float[N,M] y) { y = Hardmax(x) }""",
    "doubles.onnx": """<ir_version: 8, opset_import: ["" : 18, "ai.onnx.ml" : 4]>
        g (int64[3] x) => (double[3] y) {
            y = ai.onnx.ml.LabelEncoder<keys_int64s = [5, 7], values_tensor = double[2] {0.1, 2}>(x)
        }""",
    "sized.onnx": """<ir_version: 8, opset_import: ["" : 18]>
        g (float[N] x) => (float[1,1] y) <int64[2] shape = {4, 501}> {
            twice = Concat<axis = 0>(x, x) t = Reshape(twice, shape) y = ReduceMean(t)
        }""",
    "elements.onnx": """<ir_version: 8, opset_import: ["" : 18]>
        g (float[4,3] x, int64[1,3] i, float[1,3] u) => (float[4,3] y) {
            y = ScatterElements(x, i, u)
        }""",
    "other.onnx": """<ir_version: 8, opset_import: ["" : 18]>
        g (float[2,3] x) => (float[2] y) <int64[1] axes = {1}> {
            a = ReduceSum<keepdims = 0>(x, axes) y = Relu(a)
        }""",
}


class Case(NamedTuple):
    """A message, how to get it, and what to type then.

    Attributes:
        says: what the message says, as the source has it.
        call: a command that prints it.
        typed: what is to be typed after the command, as a pattern of what is printed.
        fill: what stands for the names in capitals.
        without: an option that is left out, with its value if it has one.
        ends: the exit code of the command with what was typed.
    """

    says: str
    call: str
    typed: str = ""
    fill: tuple[tuple[str, str], ...] = ()
    without: str = ""
    ends: int = 0


CASES = [
    Case("to overwrite it say --force", "convert mean.onnx --opset 13 -o other.onnx", "--force"),
    Case(
        "to overwrite it say --in-place",
        "convert mean.onnx --opset 13 -o mean.onnx",
        "--in-place",
        without="-o mean.onnx",
    ),
    Case(
        "--inline and --external-data-threshold exclude each other",
        "convert mean.onnx --opset 13 --inline --external-data-threshold 1MB",
        without="--inline",
    ),
    Case(
        "for several models name a folder: --out-dir DIR",
        "convert mean.onnx other.onnx --opset 13 -o x.onnx",
        "--out-dir DIR",
        (("DIR", "out"),),
        without="-o x.onnx",
    ),
    Case(
        "--resume needs the folder of an earlier run: --out-dir DIR",
        "convert mean.onnx other.onnx --opset 13 --resume",
        "--out-dir DIR",
        (("DIR", "out"),),
    ),
    Case(
        "--expand com.microsoft writes out those that it can",
        "convert microsoft.onnx --opset 13 --dry-run",
        "--expand com.microsoft",
    ),
    Case(
        "--in-place and --out-dir exclude each other",
        "convert mean.onnx other.onnx --opset 13 --in-place --out-dir out",
        without="--in-place",
    ),
    Case(
        "name a file, --json FILE",
        "convert mean.onnx --opset 13 -o - --json",
        "--json FILE",
        (("FILE", "report.json"),),
        without="-o - --json",
    ),
    Case(
        "OPERATOR and --of MODEL exclude each other",
        "ops Add --of mean.onnx",
        without="Add",
    ),
    Case("--emulate accepts that", "convert scatter.onnx --opset 15", "--emulate(?= accepts)"),
    Case(
        "leave {} out of --expand",
        "convert elements.onnx --opset 18 --expand Gelu,ScatterElements",
        without=",ScatterElements",
    ),
    Case(
        "--keep-interface needs a change of dtypes: add --dtype FROM=TO",
        "convert mean.onnx --keep-interface",
        "--dtype FROM=TO",
        (("FROM=TO", "float=double"),),
    ),
    Case(
        "--keep-dtype needs a change of dtypes: add --dtype FROM=TO",
        "convert mean.onnx --keep-dtype Relu",
        "--dtype FROM=TO",
        (("FROM=TO", "float=double"),),
    ),
    Case(
        "name the opset to reach, --opset N",
        "convert mean.onnx",
        "--opset N",
        (("N", "13"),),
    ),
    Case(
        "or the runtime that the model is for, --for RUNTIME",
        "convert mean.onnx",
        "--for RUNTIME",
        (("RUNTIME", "opencv"),),
    ),
    Case(
        "--for and --allow-ops exclude each other",
        "convert mean.onnx --for opencv --allow-ops Relu,ReduceMean",
        without="--for opencv",
    ),
    Case(
        "--strict and --no-check exclude each other",
        "convert mean.onnx --opset 13 --strict --no-check",
        without="--no-check",
    ),
    Case(
        "are for comparing whole models: add --verify",
        "convert mean.onnx --opset 13 --trials 2",
        "--verify",
    ),
    Case(
        "is itself changed by another --dtype; leave one out",
        "convert mean.onnx --dtype float=double --dtype double=float",
        without="--dtype double=float",
    ),
    Case(
        "leave --opset out, and the best one is chosen",
        "convert mean.onnx --for onnxruntime==1.8 --opset 18",
        without="--opset 18",
    ),
    Case(
        "leave --ir-version out",
        "convert mean.onnx --for onnxruntime==1.8 --ir-version 10",
        without="--ir-version 10",
    ),
    Case(
        "--verify compares the whole models",
        "convert sequence.onnx --opset 10 --no-check",
        "--verify(?= compares)",
    ),
    Case(
        "fix it: --dim NAME=SIZE",
        "convert cumsum.onnx --opset 10",
        "--dim [A-Z]+=SIZE",
        (("SIZE", "4"), ("NAME", "N")),
    ),
    Case(
        "For any other say --opset N, and --allow-ops",
        "convert mean.onnx --for hailo8x",
        "--opset N",
        (("N", "13"),),
        without="--for hailo8x",
    ),
    Case(
        "to wait longer, say --timeout SECONDS",
        "verify mean.onnx other.onnx --timeout 0.000001",
        "--timeout SECONDS",
        (("SECONDS", "60"),),
        without="--timeout 0.000001",
        ends=1,
    ),
    Case(
        "say --ir-version {}, or auto",
        "convert function.onnx --opset 13 --ir-version 7",
        r"--ir-version \d+",
        without="--ir-version 7",
    ),
    Case(
        "--ir-version {} lowers it",
        "convert newer.onnx --expand Gelu",
        r"--ir-version \d+(?= lowers)",
    ),
    Case(
        "the model imports no default domain; name the opset: --opset N",
        "convert own.onnx --strip-metadata",
        "--opset N",
        (("N", "13"),),
    ),
    Case("such as: --type {}", "convert unknown.onnx --opset 13", r"--type \S+"),
    Case(
        "or change it throughout the model: --dtype bfloat16=float",
        "convert bfloat16.onnx --opset 11",
        "--dtype bfloat16=float",
    ),
    Case(
        "that counts with --special only",
        "verify max.onnx where.onnx",
        "--special(?= only)",
        ends=1,
    ),
    Case(
        "replay them with --inputs {}",
        "verify mean.onnx other.onnx --save-failure kept",
        r"--inputs \S+",
        without="--save-failure kept",
        ends=1,
    ),
    Case(
        "leave ai.onnx.ml at {}: --ml-opset {}",
        "convert encoder.onnx --opset 10 --ml-opset 1",
        "--ml-opset 2",
        without="--ml-opset 1",
    ),
    Case(
        "--keep-dtype '{}'",
        "convert large.onnx --dtype float=float16 --verify",
        "--keep-dtype '[^']+'",
    ),
    Case("add --fold", "convert branch.onnx --opset 11", "--fold"),
    Case(
        "add --dtype int64=int32",
        "convert index.onnx --assume-range i=0:9",
        "--dtype int64=int32",
    ),
    Case(
        "--assume-range '{}=MIN:MAX'",
        "convert index.onnx --dtype int64=int32",
        "--assume-range '[^']+'",
        (("MIN", "0"), ("MAX", "9")),
    ),
    Case(
        "leave --ml-opset out, or say --ml-opset {}",
        "convert encoder.onnx --for onnxruntime==1.8 --ml-opset 3",
        r"--ml-opset \d+$",
        without=" --ml-opset 3",
    ),
    Case(
        "say --inline-functions too",
        "convert function.onnx --for onnxruntime==1.8",
        "--inline-functions",
    ),
    Case(
        "put functions in place: --inline-functions",
        "convert local.onnx --dtype int64=int32",
        "--inline-functions",
        ends=1,
    ),
    Case(
        "fix the size: --dim '{}=SIZE'",
        "convert range.onnx --dtype int64=int32",
        "--dim '[^']+'",
        (("SIZE", "4"),),
    ),
    Case(
        "fix its dimensions: --dim NAME=SIZE",
        "convert hardmax.onnx --for opencv==4.6",
        "--dim NAME=SIZE",
        (("NAME=SIZE", "N=2,M=3"),),
    ),
    Case(
        "leave ai.onnx.ml at {}: --ml-opset {}",
        "convert doubles.onnx --opset 18 --ml-opset 2",
        "--ml-opset 4",
        without=" --ml-opset 2",
    ),
    Case(
        "say them: --dim {}=SIZE, or give inputs: -i NAME=FILE.npy",
        "verify sized.onnx",
        "--dim N=SIZE",
        (("SIZE", "1002"),),
    ),
    Case(
        "leave --for out if that does not matter",
        "convert scatter.onnx --opset 18 --for opencv==4.6",
        without="--for opencv==4.6",
    ),
]


#: Parts of messages that no command here leads to, with where they come from.
ELSEWHERE = {
    "pip install": "a package that is missing here: docs/installing.md, whose lines are typed",
    "or name a version: --for {}==1.20": "no ONNX Runtime: test_without_onnxruntime.py",
    "NumPy may: --executor=numpy": "no ONNX Runtime: test_without_onnxruntime.py",
    "leave --inline-functions out": "a million nodes, or a failed check of our own step",
    "leave --dim out, or fix fewer dimensions": "a failed check of our own step",
    "leave --fold out": "a failed check of our own step",
    "leave --for or --allow-ops out": "a failed check of our own step",
    "leave --dtype out": "a failed check of our own step",
    "leave --io-dtype out": "a failed check of our own step",
    "leave --strip-metadata out": "a failed check of our own step",
    "leave --contract out, or name fewer operators": "a failed check of our own step",
    "leave --expand out, or name fewer operators": "a failed check of our own step",
    "choose another opset with --opset, or leave --for out": "a failed check of our own step",
    "allow more operators with --allow-ops": "a failed check of our own step",
    "--no-check": "a failed check of our own step, or a worker that ran out of memory",
    "see on real data: --verify -i NAME=FILE.npy": "a failed check of our own step",
    "leave out --dtype": "a result that onnx refuses: passes/dtypes.py",
    "leave it out of --keep-dtype": "a node that keeps no dtype: test_kept_dtypes.py",
    "use --resume": "models that share external data: test_convert_many.py",
    "--resume goes on": "a cluster that is gone: test_cluster.py",
    "--cluster": "a cluster: test_cluster.py",
    "--external-data-threshold 1MB": "a model of more than 2 GB: test_large_files.py",
    "--allow-outside-data": "a link to external data: test_external.py",
    "to allow more, say --memory": "a model that needs a gigabyte: test_isolated.py",
    "are too large to draw": "inputs of gigabytes: test_equivalence.py",
    "--verbose lists all": "more than ten reasons: test_plan.py",
    "--dry-run shows all": "many blockers: test_showing.py",
    "fix them: --dim NAME=SIZE": "as of one dimension: test_alternatives.py",
    "name the size of the batch by --dim": "attention of ONNX Runtime: test_microsoft.py",
    "convert MODEL --": "a command of another tool: test_help.py",
    "A command comes before a model": "a model without a command: test_help.py",
    "--report writes a page, as in": "a file that is no page: test_help.py",
    "onnxreduce ops marks": "names a command without arguments, which test_help.py types",
    "onnxreduce targets lists": "names a command without arguments, which test_help.py types",
    "onnxreduce diff says in what": "names a command, which test_help.py types",
    "convert --for": "names an option, to which the runtime belongs that is listed",
    # These say what an option is about, and nothing to type.
    "--in-place needs a file": "",
    "--dim {}": "",
    "--type {}:": "",
    "--dtype {}={}": "",
    "--io-dtype {}={}": "",
    "--assume-range {}={}": "",
    "--keep-dtype: the model has no operator": "",
    "onnxreduce failed on this input": "",
    "this onnxreduce": "",
}

#: Modules whose texts are help, whose examples are typed by test_help.py, or pages.
NO_MESSAGES = {"help.py", "options.py", "operators.py", "schema.py", "targets.py"}


def literals() -> Iterator[str]:
    """The texts of the package that name an option or a command, with {} for what is filled in."""
    for path in sorted(Path(onnxreduce_cli.__file__).parent.rglob("*.py")):
        if path.name in NO_MESSAGES and path.parent.name in ("cli", "report"):
            continue
        tree = ast.parse(path.read_text())
        docs = {
            id(node.body[0].value)
            for node in ast.walk(tree)
            if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef)
            and node.body
            and isinstance(node.body[0], ast.Expr)
        }
        parts = {
            id(item)
            for node in ast.walk(tree)
            if isinstance(node, ast.JoinedStr)
            for item in node.values
        }
        helps = {
            id(node.value)
            for node in ast.walk(tree)
            if isinstance(node, ast.keyword) and node.arg == "help"
        }
        for node in ast.walk(tree):
            if id(node) in docs | parts | helps:
                continue
            if isinstance(node, ast.JoinedStr):
                found = [
                    item.value if isinstance(item, ast.Constant) else "{}" for item in node.values
                ]
                text = "".join(map(str, found))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                text = node.value
            else:
                continue
            if (
                re.search(r"(?<![\w-])--[a-z]|\bonnxreduce [a-z]+ |pip install", text)
                and " " in text
            ):
                yield text


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, text in MODELS.items():
        onnx.save(onnx.parser.parse_model(text), name)
    return tmp_path


def joined(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.says}: {case.call}")
def test_what_is_said_works(onnxreduce, folder, case):
    made = set(folder.iterdir())
    first = onnxreduce(*shlex.split(case.call))
    for path in set(folder.glob("*.onnx")) - made:
        path.unlink()
    said = joined(first.out + first.err)
    assert re.search(re.escape(case.says).replace(r"\{\}", ".*?"), said), said
    call = case.call
    if case.without:
        assert case.without in call
        call = call.replace(case.without, "")
    if case.typed:
        typed = re.search(case.typed, said)
        assert typed is not None, said
        text = typed.group()
        for name, value in case.fill:
            text = re.sub(rf"\b{name}\b", value, text)
        call = f"{call} {text}"
    then = onnxreduce(*shlex.split(call))
    assert then.code == case.ends, f"{call}\n{then.out}{then.err}"


def test_what_is_run_elsewhere_is_there() -> None:
    known = {path.name for path in Path(__file__).parents[1].rglob("test_*.py")}
    named = {name for why in ELSEWHERE.values() for name in re.findall(r"test_\w+\.py", why)}
    assert named <= known


def test_each_message_has_a_case() -> None:
    known = [*ELSEWHERE, *(case.says for case in CASES)]
    assert [text for text in literals() if not any(part in text for part in known)] == []
