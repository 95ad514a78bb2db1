"""ONNX Runtime's kernels: `python -m lab.operators.onnxruntime FOLDER`.

The folder is a clone of a repository with the whole history of ONNX Runtime. Up to 1.15 its table
of kernels is read, docs/OperatorKernels.md, at the commit from which the release was branched;
later CPU wheels list their kernels themselves.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import onnx
from onnx.defs import OpSchema

from lab.installing import install
from lab.operators.repositories import read
from lab.operators.writing import Facts, Release, Row, Source, write
from lab.running import environment
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
        source = Source("document", where, found.date, named, "" if on_cpu else "onnxruntime")
        yield Release(version, source, facts(kernels, bodies=on_cpu, version=version))
    if on_cpu:
        for version, wheel in WHEELS.items():
            where = "the kernels that the CPU wheels from PyPI list"
            source = Source("measured", where, WHEELS_DATE, domains)
            kernels = wheel_kernels(wheel)
            yield Release(version, source, facts(kernels, bodies=True, version=version))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
