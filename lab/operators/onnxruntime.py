"""ONNX Runtime's kernels: `python -m lab.operators.onnxruntime FOLDER`.

The folder is a clone of a repository with the whole history of ONNX Runtime. From 1.8 to 1.15 its
table of kernels is read, docs/OperatorKernels.md, at the commit from which a release was branched;
later CPU wheels list their kernels themselves. Earlier ones are asked, as the tables of their time
are older than they are: onnx's own test cases of single nodes are loaded, and one case of each
version of an operator with each dtype of its inputs.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import onnx
from onnx import ModelProto, TensorProto
from onnx.defs import OpSchema

from lab.installing import install
from lab.kernels import LOADER, models
from lab.operators.names import asked as single_nodes
from lab.operators.repositories import read
from lab.operators.writing import Facts, Release, Row, Source, write
from lab.running import environment
from onnxreduce_cli import schemas
from onnxreduce_cli.targets.requirement import find_target

TABLE = "docs/OperatorKernels.md"

#: The commit whose table is that of a release: the last one before the version number changed.
COMMITS = {
    "1.8": "0f989c6162^",
    "1.9": "4934455ab6^",
    "1.10": "8043a9facc^",
    "1.11": "8ba52b0a05^",
    "1.12": "0264a9c29b^",
    "1.13": "397edf9918^",
    "1.14": "eacd829d23^",
    "1.15": "1fb2f2605b^",
    "1.16": "e6301eee6a^",
    "1.17": "bd9d8fb2a5^",
    "1.18": "b2481e3602^",
    "1.19": "134f47743e^",
    "1.20": "e5c2e50849^",
    "1.21": "7864192c9c^",
    "1.22": "6c8cb6a6d1^",
    "1.23": "bb7c295a73^",
    "1.24": "0678e88564^",
}

#: The wheels that are asked, by the series of their version.
WHEELS = {
    "1.16": "1.16.3",
    "1.17": "1.17.3",
    "1.18": "1.18.1",
    "1.19": "1.19.2",
    "1.20": "1.20.1",
    "1.21": "1.21.1",
    "1.22": "1.22.1",
    "1.23": "1.23.2",
    "1.24": "1.24.4",
    "1.25": "1.25.1",
    "1.26": "1.26.0",
    "1.27": "1.27.0",
    "1.28": "1.28.0",
    "1.29": "1.29.0",
    "1.30": "1.30.0",
    "1.31": "1.31.1",
    "1.32": "1.32.0",
}

#: The wheels that have neither a table of their time nor a list.
OLD_WHEELS = {"1.3": "1.3.0", "1.4": "1.4.0", "1.5": "1.5.2", "1.6": "1.6.0", "1.7": "1.7.0"}

#: The wheels of releases whose table has kernels that came after their branch.
EARLY_TABLES = {"1.8": "1.8.1"}

_CASES = "onnx's test cases of single nodes, loaded in the CPU wheels from PyPI"

WHEELS_DATE = "2026-11-25"

#: The execution providers that have a section in the table, by the runtime that they are here.
PROVIDERS = {
    "onnxruntime": "CPUExecutionProvider",
    "onnxruntime-cuda": "CUDAExecutionProvider",
    "onnxruntime-directml": "DmlExecutionProvider",
}

#: Kernels that a release got after its branch: its wheel loads them, the table lacks them.
LATER = {"1.15": {("", "Shape"): 19}}

#: Operators that the default domain has in ONNX Runtime only: its own, and those of opsets 1 to 9
#: that were experimental.
MADE_UP = {
    "Affine",
    "Crop",
    "DynamicSlice",
    "GroupNorm",
    "ImageScaler",
    "ParametricSoftplus",
    "Scale",
    "ScaledTanh",
    "SimplifiedLayerNormalization",
    "FusedMatMul",
}

#: Kernels that have no type parameter, which the table leaves out.
UNTYPED = {("", "NonMaxSuppression"): 10}

#: Operators that its own optimizers write, which no model holds.
INTERNAL = {"MemcpyFromHost", "MemcpyToHost"}

#: Domains of which it writes nodes itself.
INTERNAL_DOMAINS = {"com.microsoft.nchwc", "com.ms.internal.nhwc", "com.microsoft.dml"}

#: The last opset of a kernel that is open to the end.
OPEN = (1 << 31) - 1


class Kernel(NamedTuple):
    """A kernel.

    Attributes:
        domain: the domain of its operator.
        op_type: the operator.
        opsets: the first and the last version of the operator.
        types: the types by the name of each type parameter.
    """

    domain: str
    op_type: str
    opsets: tuple[int, int]
    types: dict[str, frozenset[str]]


def wheel_kernels(version: str) -> list[Kernel]:
    """Return the kernels of a CPU wheel."""
    installed = install("onnxruntime", version)
    runner = Path(__file__).parents[1] / "runners" / "list_kernels.py"
    done = subprocess.run(
        [installed.program, str(runner)],
        env=environment(installed, str(installed.folder)),
        capture_output=True,
        text=True,
        check=True,
    )
    return [
        Kernel(domain, name, (first, last), {key: frozenset(held) for key, held in types.items()})
        for domain, name, (first, last), types in json.loads(done.stdout)
    ]


def loaded_facts(version: str) -> Facts:
    """Return the rows of the operators that a wheel loads, or has no kernel for, of those in cases.

    Args:
        version: the version of the wheel.
    """
    newest = find_target(f"onnxruntime=={version}").newest or 0
    cases = list(models(newest))
    said = dict.fromkeys((name for name, _ in cases), "")
    loads: dict[str, ModelProto] = {}
    for asked in (cases, [*_relabelled(cases, newest), *_single_nodes(newest)]):
        asked = [(name, model) for name, model in asked if name not in loads]
        answers = loading(version, [model for _, model in asked])
        for (name, model), answer in zip(asked, answers, strict=True):
            if answer == _LOADED:
                loads.setdefault(name, model)
            elif name in said:
                said[name] += answer
    lacks = {name for name, answer in said.items() if _NO_KERNEL in answer}
    case = dict(reversed(cases)) | loads
    retyped = [(name, *found) for name, model in case.items() for found in _retyped(model)]
    types: dict[str, dict[str, set[str]]] = {}
    answers = loading(version, [model for *_, model in retyped])
    for (name, parameter, kind, model), answer in zip(retyped, answers, strict=True):
        if answer == _LOADED:
            loads.setdefault(name, model)
        held = types.setdefault(name, {}).setdefault(parameter, set())
        # What else it says is about the node, not about the kernel.
        if _NO_KERNEL not in answer:
            held.add(kind)
    kernels = []
    for name in sorted(loads):
        op_type, _, since = name.rpartition("-")
        known = {
            parameter: _kernel_types(kinds) for parameter, kinds in types.get(name, {}).items()
        }
        kernels.append(Kernel("", op_type, (int(since), int(since)), known))
    found = {key: list(rows) for key, rows in facts(kernels, bodies=False, version=version).items()}
    for name in sorted(lacks - loads.keys()):
        op_type, _, since = name.rpartition("-")
        for opsets in opsets_of_kernel(Kernel("", op_type, (int(since), int(since)), {})):
            found.setdefault(("", op_type), []).append(Row(_written(opsets), value="not"))
    return found


def _kernel_types(kinds: Iterable[str]) -> frozenset[str]:
    """Return types without complex ones, and without float16, which it casts to float."""
    found = {kind for kind in kinds if "complex" not in kind}
    return frozenset(found - {"tensor(float16)"} if "tensor(float)" in found else found)


def _relabelled(
    cases: Iterable[tuple[str, ModelProto]], newest: int
) -> Iterator[tuple[str, ModelProto]]:
    """Yield the cases as models of each other version of their operator.

    What they mean there is not theirs, but what loads has a kernel there.
    """
    for name, model in cases:
        op_type, _, since = name.rpartition("-")
        versions = schemas.versions(op_type)
        for version, later in zip(versions, [*versions[1:], newest + 1], strict=True):
            if version <= newest and later > _OLDEST and version != int(since):
                made = ModelProto()
                made.CopyFrom(model)
                made.opset_import[0].version = max(version, _OLDEST)
                yield f"{op_type}-{version}", made


def _single_nodes(newest: int) -> Iterator[tuple[str, ModelProto]]:
    """Yield a node of each version of each operator, with inputs and attributes of no meaning."""
    for question in single_nodes():
        domain, op_type = question.name
        first, last = question.opsets
        asked = not domain and bool(since_versions("", op_type))
        if asked and (first or 1) <= newest and (last or newest) >= _OLDEST:
            yield f"{op_type}-{first or 1}", question.model


#: The oldest opset that all wheels take.
_OLDEST = 7

#: What the loader says of a model that loads.
_LOADED = "loaded"

#: What a wheel says of a node that it has no kernel for.
_NO_KERNEL = "Could not find an implementation"


def _until(rows: Iterable[Row], later: Iterable[Row]) -> Iterator[Row]:
    """Yield the rows at opsets before those of other rows."""
    end = min((row.opsets[0] or 1 for row in later), default=1) - 1
    for row in rows:
        first, last = row.opsets
        if (first or 1) <= end:
            yield row._replace(opsets=(first or 1, min(last or end, end)))


def loading(version: str, asked: Sequence[ModelProto]) -> list[str]:
    """Return what a wheel says of each model: ``loaded``, or why not."""
    installed, target = install("onnxruntime", version), find_target(f"onnxruntime=={version}")
    with tempfile.TemporaryDirectory() as folder:
        for number, model in enumerate(asked):
            model.ir_version = min(model.ir_version, target.ir_version or model.ir_version)
            onnx.save(model, Path(folder, f"{number:06}.onnx"))
        done = subprocess.run(
            [installed.program, str(LOADER), folder],
            env=environment(installed, folder),
            capture_output=True,
            text=True,
            check=True,
        )
    return done.stdout.splitlines()


def _retyped(model: ModelProto) -> Iterator[tuple[str, str, ModelProto]]:
    """Yield a type parameter, a type, and a model of one node whose inputs of it have that type."""
    (node,) = model.graph.node
    found = schemas.schema(node.op_type, model.opset_import[0].version)
    places = [
        (formals[min(index, len(formals) - 1)].type_str, values[name])
        for formals, names, values in (
            (found.inputs, node.input, {item.name: item for item in model.graph.input}),
            (found.outputs, node.output, {item.name: item for item in model.graph.output}),
        )
        for index, name in enumerate(names)
        if formals and name in values
    ]
    of_inputs = {item.type_str for item in found.inputs}
    for constraint in found.type_constraints:
        name = constraint.type_param_str
        held = [value for parameter, value in places if parameter == name]
        if name not in of_inputs or not held:
            continue
        for kind in constraint.allowed_type_strs:
            elem_type = _ELEM_TYPES.get(kind)
            if elem_type is None or not all(value.type.HasField("tensor_type") for value in held):
                continue
            before = [value.type.tensor_type.elem_type for value in held]
            for value in held:
                value.type.tensor_type.elem_type = elem_type
            made = ModelProto()
            made.CopyFrom(model)
            for value, own in zip(held, before, strict=True):
                value.type.tensor_type.elem_type = own
            yield name, kind, made


#: The dtypes by the types that definitions name.
_ELEM_TYPES = {
    f"tensor({name.lower()})": number for name, number in TensorProto.DataType.items() if number
}


def table_kernels(text: str, provider: str) -> list[Kernel]:
    """Return the kernels of a provider in a table of OperatorKernels.md."""
    section = re.split(r"^## ", text, flags=re.MULTILINE)
    own = [
        part for part in section if re.search(rf"implemented by {provider}$", part, re.MULTILINE)
    ]
    found, domain, op_type = [], "", ""
    for line in own[0].splitlines() if own else ():
        if line.startswith("|**Operator Domain:**"):
            domain = re.search(r"\*([a-z.]+)\*\|", line)[1]
        elif line.startswith("|") and domain:
            cells = [cell.strip() for cell in line.strip()[1:-1].split("|")]
            if not "".join(cells).strip() or cells[0] == "Op Name" or set(cells[0]) == {"-"}:
                continue
            if len(cells) != 4:
                raise ValueError(f"no kernel: {line!r}")
            op_type = cells[0] or op_type
            # The table of 1.8 has the default domain's operators under that name as well.
            ml = domain == "ai.onnx.ml" and (domain, op_type) in _schemas()
            found.append(
                Kernel(
                    "" if domain == "ai.onnx" or (domain == "ai.onnx.ml" and not ml) else domain,
                    op_type,
                    _opsets(cells[2]),
                    _types(cells[3]),
                )
            )
    return found


def _opsets(text: str) -> tuple[int, int]:
    if text.startswith("["):
        first, last = re.fullmatch(r"\[(\d+), (\d+)\]", text).groups()
        return int(first), int(last)
    return int(text.rstrip("+")), OPEN if text.endswith("+") else int(text)


def _types(text: str) -> dict[str, frozenset[str]]:
    found = {}
    for part in re.split(r"<br ?/?>", text):
        name, equals, held = part.partition("=")
        if equals:
            found[name.strip().strip("*")] = frozenset(
                kind.strip() for kind in re.split(r",\s*(?![^()]*\))", held)
            )
    return found


def facts(kernels: Iterable[Kernel], *, bodies: bool, version: str) -> Facts:
    """Return the rows of what has a kernel, or a function body that is written out.

    Args:
        kernels: the kernels.
        bodies: whether operators without a kernel are written out.
        version: the version of ONNX Runtime.
    """
    types: dict[tuple[str, str, tuple[int, int | None]], dict[str, set[str]]] = {}
    for kernel in kernels:
        if kernel.op_type in INTERNAL or kernel.domain in INTERNAL_DOMAINS:
            continue
        for opsets in opsets_of_kernel(kernel):
            key = (kernel.domain, kernel.op_type, opsets)
            held = types.setdefault(key, {})
            for name, kinds in kernel.types.items():
                held.setdefault(name, set()).update(kinds)
    rows: dict[tuple[str, str], set[Row]] = {}
    for (domain, op_type, opsets), held in types.items():
        dtypes = tuple(sorted(_dtypes(domain, op_type, opsets, held), key=lambda item: item[0]))
        rows.setdefault((domain, op_type), set()).add(Row(_written(opsets), dtypes))
    if bodies:
        for name, opset in UNTYPED.items():
            rows.setdefault(name, {Row((opset, None))})
        for name, opset in LATER.get(version, {}).items():
            rows.setdefault(name, set()).add(Row((opset, None)))
        for op_type, opset in list(_written_out(rows, version)):
            newest = find_target(f"onnxruntime=={version}").newest
            last = None if opset == newest else opset
            rows.setdefault(("", op_type), set()).add(Row((opset, last)))
        rows.setdefault(("", "Constant"), set()).add(Row())
    return {name: _joined(held) for name, held in rows.items()}


def _written(opsets: tuple[int, int | None]) -> tuple[int | None, int | None]:
    first, last = opsets
    return (None, None) if first == 1 and last is None else (first, last)


def _joined(rows: Iterable[Row]) -> list[Row]:
    """Return rows with those joined that differ in opsets only and follow each other."""
    found: list[Row] = []
    for row in sorted(rows, key=lambda row: row.opsets[0] or 0):
        before = found[-1] if found else None
        same = before is not None and before[1:] == row[1:]
        if same and before.opsets[1] is not None and before.opsets[1] + 1 == row.opsets[0]:
            first, last = before.opsets[0], row.opsets[1]
            opsets = (None, None) if first == 1 and last is None else (first, last)
            found[-1] = before._replace(opsets=opsets)
        else:
            found.append(row)
    return found


def opsets_of_kernel(kernel: Kernel) -> Iterator[tuple[int, int | None]]:
    """Yield the opsets of models whose nodes a kernel runs.

    A kernel that is open to the end runs the one version of the operator that it begins with.
    """
    first, last = kernel.opsets
    since = since_versions(kernel.domain, kernel.op_type)
    if not since:
        yield first, None if last == OPEN else last
        return
    for index, version in enumerate(since):
        if version == first or (last != OPEN and first <= version <= last):
            later = since[index + 1 :]
            yield version, later[0] - 1 if later else None


def since_versions(domain: str, op_type: str) -> list[int]:
    """Return the versions of an operator, ascending; none where onnx has no such operator."""
    return sorted(_schemas().get((domain, op_type), {}))


_SCHEMAS: dict[tuple[str, str], dict[int, OpSchema]] = {}


def _schemas() -> Mapping[tuple[str, str], dict[int, OpSchema]]:
    if not _SCHEMAS:
        for found in onnx.defs.get_all_schemas_with_history():
            _SCHEMAS.setdefault((found.domain, found.name), {})[found.since_version] = found
    return _SCHEMAS


def _dtypes(
    domain: str, op_type: str, opsets: tuple[int, int | None], held: Mapping[str, set[str]]
) -> Iterator[tuple[str, frozenset[str]]]:
    """Yield the dtypes of the type parameters that are tensors and are not all allowed ones."""
    definition = _schemas().get((domain, op_type), {}).get(opsets[0])
    for name, kinds in held.items():
        dtypes = frozenset(kind[7:-1] for kind in kinds if kind.startswith("tensor("))
        if not dtypes or len(dtypes) != len(kinds):
            continue
        if definition is not None:
            known = {item.type_param_str: item for item in definition.type_constraints}
            if name not in known:
                continue
            if set(known[name].allowed_type_strs) <= kinds:
                continue
        yield name, dtypes


def _written_out(
    rows: Mapping[tuple[str, str], set[Row]], version: str
) -> Iterator[tuple[str, int]]:
    """Yield the operators without a kernel that have a function body, with each of their opsets.

    Where the lab found that ONNX Runtime refuses one, the body holds what has no kernel either.
    """
    target = find_target(f"onnxruntime=={version}")
    refusing = [
        quirk for quirk in target.quirks if quirk.effect == "refused" and quirk.form == "any"
    ]
    for (domain, op_type), definitions in _schemas().items():
        held = rows.get((domain, op_type), ())
        for opset in range(min(definitions), target.newest + 1) if not domain else ():
            found = definitions[max(since for since in definitions if since <= opset)]
            # GroupNormalization of opset 18 is deprecated, and taken.
            if any(_holds(row, opset) for row in held):
                continue
            if not (found.has_function or found.has_context_dependent_function):
                continue
            if not any(op_type in quirk.operators and quirk.at(opset) for quirk in refusing):
                yield op_type, opset


def _holds(row: Row, opset: int) -> bool:
    first, last = row.opsets
    return (first or 1) <= opset and (last is None or opset <= last)


def main(clone: Path) -> None:
    """Write the files of the CPU, CUDA and DirectML."""
    for runtime, provider in PROVIDERS.items():
        releases = [*_releases(clone, runtime, provider)]
        path = write(
            runtime,
            "onnxruntime",
            releases,
            casts={"": "float16=float"} if runtime == "onnxruntime" else {},
            made_up=MADE_UP,
        )
        print(path, path.stat().st_size)


def _releases(clone: Path, runtime: str, provider: str) -> Iterator[Release]:
    on_cpu = runtime == "onnxruntime"
    domains = ("ai.onnx", "ai.onnx.ml", "com.microsoft")
    if on_cpu:
        for version, wheel in OLD_WHEELS.items():
            source = Source("measured", _CASES, WHEELS_DATE)
            yield Release(version, source, loaded_facts(wheel))
    for version, commit in COMMITS.items():
        if on_cpu and version in WHEELS:
            continue
        found = read(clone, commit, TABLE)
        kernels = table_kernels(found.text, provider)
        if not kernels:
            continue
        where = f"microsoft/onnxruntime {TABLE}, {found.commit}"
        # Some kernels of com.microsoft came after the branch, others have no type parameter.
        named = domains[:2] if on_cpu else domains
        rows = facts(kernels, bodies=on_cpu, version=version)
        if on_cpu and version in EARLY_TABLES:
            where += f", and {_CASES}"
            loaded = loaded_facts(EARLY_TABLES[version])
            # No case has the oldest definitions of some operators.
            rows |= {
                name: [*_until(rows.get(name, ()), held), *held] for name, held in loaded.items()
            }
        source = Source("document", where, found.date, named, "" if on_cpu else "onnxruntime")
        yield Release(version, source, rows)
    if on_cpu:
        for version, wheel in WHEELS.items():
            where = "the kernels that the CPU wheels from PyPI list"
            source = Source("measured", where, WHEELS_DATE, domains)
            kernels = wheel_kernels(wheel)
            yield Release(version, source, facts(kernels, bodies=True, version=version))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
