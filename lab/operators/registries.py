"""What converters register: `python -m lab.operators.registries FOLDER [RUNTIME ...]`.

The folder holds a clone of each repository, as OWNER+NAME/repo. A name that is not registered is
refused; what a converter checks within an operator is not read.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

from lab.operators.onnxruntime import (
    COMMITS,
    OPEN,
    Kernel,
    since_versions,
)
from lab.operators.onnxruntime import facts as kernel_facts
from lab.operators.repositories import files, git
from lab.operators.writing import Facts, Release, Row, Source, write
from onnxreduce_cli.targets.operators import read_operators

#: An operator as the source names it, and the row of it.
Named = tuple[str, Row]


class Registry(NamedTuple):
    """A converter's source.

    Attributes:
        repository: the repository, as ``sonos/tract``.
        tags: the tag or commit of each version.
        path: what the paths of its files look like; one is enough.
        names: reads the operators in the texts of the files, by their paths.
        aliases: the operator that the source means, where it says otherwise; empty for none.
        made_up: operators that no onnx defines, which it takes in the default domain.
        complete: whether it names all operators of the default domain.
        partial: the versions of which it does not, all the same.
        fallback: the runtime that runs what a version does not name, where there is one.
        conditions: the words and the lines of code of each condition that rows name.
    """

    repository: str
    tags: Mapping[str, str]
    path: str
    names: Callable[[Mapping[str, str]], Iterable[Named]]
    aliases: Mapping[str, str] = {}
    made_up: frozenset[str] = frozenset()
    complete: bool = True
    partial: frozenset[str] = frozenset()
    fallback: Mapping[str, str] = {}
    conditions: Mapping[str, tuple[str, str]] = {}


_WHOLE = re.MULTILINE | re.DOTALL


def matches(pattern: str, section: str = "") -> Callable[[Mapping[str, str]], Iterator[Named]]:
    """Return a reader of the names that a pattern finds, in a section of each file."""

    def names(texts: Mapping[str, str]) -> Iterator[Named]:
        for text in texts.values():
            if section:
                found = re.search(section, text, re.MULTILINE | re.DOTALL)
                if found is None:
                    continue
                text = found[0]
            for name in re.findall(pattern, text, re.MULTILINE):
                yield name, Row()

    return names


def since(texts: Mapping[str, str]) -> Iterator[Named]:
    """Yield the names that torch-mlir has a pattern for, from an opset on."""
    for text in texts.values():
        for name, first in re.findall(r'patterns\.onOp\(\s*"(\w+)",\s*(\d+)', text):
            yield name, Row() if first == "1" else Row((int(first), None))


def versions_of(pattern: str) -> Callable[[Mapping[str, str]], Iterator[Named]]:
    """Return a reader of names with the one version of each that is implemented."""

    def names(texts: Mapping[str, str]) -> Iterator[Named]:
        held: dict[str, set[int]] = {}
        for text in texts.values():
            for name, version in re.findall(pattern, text):
                held.setdefault(name, set()).add(int(version))
        for name, versions in held.items():
            for opsets in _ranges_of_versions(name, versions):
                yield name, Row(opsets)

    return names


def _ranges_of_versions(name: str, held: set[int]) -> Iterator[tuple[int | None, int | None]]:
    """Yield the ranges of opsets at which the version of an operator is one of some."""
    domain = _domain(name, {}, frozenset())[0]
    known = since_versions(domain, name)
    if odd := held - set(known):
        # Not a version of the operator: the next older one has this number in the source only.
        print(f"{name} has no version {', '.join(map(str, sorted(odd)))}", file=sys.stderr)
    start: int | None = None
    for index, version in enumerate(known):
        if version in held and start is None:
            start = version
        if version not in held and start is not None:
            yield start, version - 1
            start = None
        if index == len(known) - 1 and start is not None:
            yield (None, None) if start == 1 else (start, None)


def classes_with_versions(texts: Mapping[str, str]) -> Iterator[Named]:
    """Yield the operators of jaxonnxruntime: a class each, with a method for each version.

    The newest method serves all later versions as well, as the lab found.
    """
    for text in texts.values():
        names = re.findall(r"register_op\(['\"](\w+)['\"]\)", text)
        versions = {int(found) for found in re.findall(r"def version_(\d+)\(", text)}
        for name in names:
            if not since_versions("", name):
                yield name, Row()
                continue
            first = min(versions & set(since_versions("", name)), default=None)
            if first is not None:
                yield name, Row((None, None) if first == 1 else (first, None))


def tinygrad(texts: Mapping[str, str]) -> Iterator[Named]:
    """Yield the functions of tinygrad's `get_onnx_ops`, and the methods that it lists."""
    (body,) = (
        text[text.index("def get_onnx_ops") :]
        for text in texts.values()
        if "def get_onnx_ops" in text
    )
    for name in re.findall(r"^  def ([A-Z]\w*)\(|^  ([A-Z]\w*) *= *\{", body, re.MULTILINE):
        yield "".join(name), Row()
    listed = re.search(r"for op in \((.*?)\)\}", body, re.DOTALL)
    for name in re.findall(r'"(\w+)"', listed[1] if listed else ""):
        yield name, Row()


def file_names(texts: Mapping[str, str]) -> Iterator[Named]:
    """Yield the names of the files."""
    for path in texts:
        if (name := Path(path).stem)[0].isupper():
            yield name, Row()


def migraphx(texts: Mapping[str, str]) -> Iterator[Named]:
    """Yield the names in the braces that the parsers of MIGraphX return."""
    pattern = r"operators\(\) const(.*?)\};"
    for text in texts.values():
        for body in re.findall(pattern, text, re.DOTALL):
            for name in re.findall(r'\{"(\w+)"', body):
                yield name, Row()


def onnx2ncnn(texts: Mapping[str, str]) -> Iterator[Named]:
    """Yield the operators that onnx2ncnn writes as layers, and those that it only fuses."""
    for text in texts.values():
        layers = set(re.findall(r'\bop == "(\w+)"', text))
        for name in sorted(layers):
            yield name, Row()
        for name in sorted(set(re.findall(r'op_type\(\) [!=]= "(\w+)"', text)) - layers):
            yield name, Row(conditions=("fused",))


def x2paddle(texts: Mapping[str, str]) -> Iterator[Named]:
    """Yield the methods and the tables of X2Paddle's classes, each of which inherits the last."""
    for path, text in texts.items():
        since = re.search(r"opset(\d+)\.py$", path)
        opsets = (int(since[1]), None) if since and since[1] != "7" else (None, None)
        for name in re.findall(r"^    def ([A-Z]\w*)\(", text, re.MULTILINE):
            yield name, Row(opsets)
        for table in re.findall(r"(?:directly_map|elementwise)_ops = \{(.*?)^ +\}", text, _WHOLE):
            for name in re.findall(r"^ +'([A-Z]\w*)':", table, re.MULTILINE):
                yield name, Row(opsets)


def xnnpack(texts: Mapping[str, str]) -> Iterator[Named]:
    """Yield the kernels of ONNX Runtime's XNNPACK with their opsets."""
    kernel = (
        r"(?:^ +KERNEL_CREATE_INFO(?:_\w+)?\(|XnnpackExecutionProvider, *\w+, *)(\d+), "
        r"(?:(\d+), |u?int8_t, )?(\w+)"
    )
    kernels = [
        Kernel("", name, (int(first), int(last) if last else OPEN), {})
        for text in texts.values()
        for first, last, name in re.findall(
            kernel, text[text.index("function_table[]") :], re.MULTILINE
        )
    ]
    for (_, name), rows in kernel_facts(kernels, bodies=False, version="").items():
        for row in rows:
            yield name, row


def _commits_since(version: str) -> dict[str, str]:
    """Return the commits of ONNX Runtime's releases from one on."""
    return dict([*COMMITS.items()][[*COMMITS].index(version) :])


#: Where ONNX Runtime's history is, which its own repository is too large for.
_ONNXRUNTIME = "onnxruntime/onnxruntime-qnn"

REGISTRIES: Mapping[str, Registry] = {
    "tract": Registry(
        "sonos/tract",
        {
            "0.17": "v0.17.9",
            "0.18": "v0.18.5",
            "0.19": "v0.19.16",
            "0.20": "v0.20.22",
            "0.21": "v0.21.17",
            "0.22": "v0.22.3",
            "0.23": "v0.23.5",
        },
        r"^onnx/src/.*\.rs$",
        matches(r'\binsert\(\s*"(\w+)"'),
        made_up=frozenset({"SimplifiedLayerNormalization"}),
    ),
    "tvm": Registry(
        "apache/tvm",
        {
            **{f"0.{minor}": f"v0.{minor}.0" for minor in (7, 8, 9, 10, 11, 12, 13, 14, 15)},
            **{f"0.{minor}": f"v0.{minor}.0" for minor in range(16, 27)},
        },
        r"^python/tvm/(relay/frontend/onnx|relax/frontend/onnx/onnx_frontend)\.py$",
        matches(r'^ +"(\w+)":', r"def _get_convert_map\(.*?^    \}"),
    ),
    "iree": Registry(
        "llvm/torch-mlir",
        # The commit that each release of iree-org/iree has as third_party/torch-mlir.
        {
            "3.1": "061bbc5e1bc4f7880bb565e404a6709f97396818",
            "3.2": "eefc553ffca45fd2432641918a73b810f64bba39",
            "3.3": "e4a2f86832103df4b0178666f4b17dfecf5b8bb7",
            "3.4": "bff2a99fd596766a8d85f6ebb9ef80044dcc6b81",
            "3.7": "155680c08e08bff6d2e6883415e3f5a1b474d96e",
            "3.8": "7000187be292710f3a5044f46e577f22e6cfef57",
            "3.9": "a2bcca0f025bf05582d6135d60204cfa3ea3ec7c",
            "3.10": "9a1f70ddd46c1f217522d83c0dfc9d36d65e9eda",
            "3.11": "7f1d4b2686d460f887944d8d10b7d2faf657ad0f",
        },
        r"^lib/Conversion/TorchOnnxToTorch/DefaultDomain\w+\.cpp$",
        since,
    ),
    "onnx2torch": Registry(
        "ENOT-AutoDL/onnx2torch",
        {
            "1.0": "v1.0.0",
            "1.1": "v1.1.0",
            "1.2": "v1.2.5",
            "1.3": "v1.3.0",
            "1.4": "v1.4.1",
            "1.5": "v1.5.15",
        },
        r"^onnx2torch/node_converters/.*\.py$",
        versions_of(r"add_converter\(\s*operation_type=['\"](\w+)['\"],\s*version=(\d+)"),
    ),
    "rten": Registry(
        "robertknight/rten",
        {f"0.{minor}": f"v0.{minor}.0" for minor in (14, *range(17, 26))},
        r"^src/(op_registry|op_registry/onnx_registry)\.rs$",
        matches(r'register_op!\(\s*(?:"[\w.]+",\s*)?"?(\w+)'),
        made_up=frozenset({"SimplifiedLayerNormalization"}),
    ),
    "candle": Registry(
        "huggingface/candle",
        {"0.8": "0.8.4", "0.9": "0.9.1", "0.10": "0.10.2", "0.11": "0.11.0"},
        r"^candle-onnx/src/eval\.rs$",
        matches(r'^            "(\w+)" => \{'),
    ),
    "gonnx": Registry(
        "AdvancedClimateSystems/gonnx",
        {"1.0": "v1.0.0", "1.1": "v1.1.0"},
        r"^ops/opset13/opset13\.go$",
        matches(r'^\t"(\w+)": +new'),
    ),
    "jaxonnxruntime": Registry(
        "google/jaxonnxruntime",
        {"0.1": "v0.1.0", "0.2": "v0.2.0", "0.3": "v0.3.0"},
        r"^jaxonnxruntime/onnx_ops/\w+\.py$",
        classes_with_versions,
    ),
    "tinygrad": Registry(
        "tinygrad/tinygrad",
        {"0.10.3": "v0.10.3", "0.11": "v0.11.0", "0.12": "v0.12.0", "0.13": "v0.13.0"},
        r"^(extra/onnx|tinygrad/(frontend|nn)/onnx)\.py$",
        tinygrad,
    ),
    "migraphx": Registry(
        "ROCm/AMDMIGraphX",
        {
            "5.0": "rocm-5.0.0",
            "5.7": "rocm-5.7.1",
            "6.0": "rocm-6.0.2",
            "6.1": "rocm-6.1.2",
            "6.2": "rocm-6.2.4",
            "6.3": "rocm-6.3.3",
            "6.4": "rocm-6.4.4",
            "7.0": "rocm-7.0.2",
            "7.1": "rocm-7.1.1",
            "7.2": "rocm-7.2.4",
        },
        r"^src/onnx/parse_\w+\.cpp$",
        migraphx,
        made_up=frozenset({"SimplifiedLayerNormalization"}),
    ),
    "onnx2tf": Registry(
        "PINTO0309/onnx2tf",
        {
            **{f"1.{minor}": f"1.{minor}.0" for minor in (0, 5, 10, 15, 20, 25, 28)},
            "2.0": "2.0.27",
            "2.6": "2.6.7",
        },
        r"^onnx2tf/ops/\w+\.py$",
        file_names,
    ),
    "onnx2ncnn": Registry(
        "Tencent/ncnn",
        {
            tag: tag
            for tag in (
                *("20200106", "20201218", "20211208", "20220729", "20230816", "20241226"),
                "20260526",
            )
        },
        r"^tools/onnx/onnx2ncnn\.cpp$",
        onnx2ncnn,
        aliases={"GroupNorm": "", "MultiHeadAttention": "", "Normalize": "", "Swish": ""},
        made_up=frozenset({"ImageScaler"}),
        conditions={"fused": ("it is part of what onnx2ncnn fuses", "")},
    ),
    "nncase": Registry(
        "kendryte/nncase",
        {
            "1.9": "v1.9.0",
            "2.0": "v2.0.0",
            "2.4": "v2.4.0",
            "2.8": "v2.8.0",
            "2.11": "v2.11.0",
            "3.10": "v3.10.1",
        },
        r"^src/(importer/onnx/opcode\.def|Nncase\.Importer/Onnx/OnnxImporter\.cs)$",
        matches(r'^(?:DEFINE_OPCODE\(|\s+")(\w+)(?:\)|" =>)'),
        aliases={"QLinearMatmul": ""},
    ),
    "x2paddle": Registry(
        "PaddlePaddle/X2Paddle",
        {"1.6": "4236c2a7"},
        r"^x2paddle/op_mapper/onnx2paddle/opset\w+\.py$",
        x2paddle,
    ),
    "onnxruntime-qnn": Registry(
        _ONNXRUNTIME,
        _commits_since("1.15"),
        r"^onnxruntime/core/providers/qnn/builder/op_builder_factory\.cc$",
        matches(r'Create\w+OpBuilder\("(\w+)"'),
        fallback=dict.fromkeys(COMMITS, "onnxruntime"),
    ),
    "onnxruntime-xnnpack": Registry(
        _ONNXRUNTIME,
        _commits_since("1.13"),
        r"^onnxruntime/core/providers/xnnpack/xnnpack_execution_provider\.cc$",
        xnnpack,
        fallback=dict.fromkeys(COMMITS, "onnxruntime"),
    ),
    "mnn": Registry(
        "alibaba/MNN",
        {
            "1.2": "1.2.0",
            "2.0": "2.0.0",
            "2.5": "2.5.0",
            "2.9": "2.9.0",
            "3.0": "3.0.0",
            "3.3": "3.3.0",
            "3.6": "3.6.1",
        },
        r"^tools/converter/source/(onnx|optimizer/onnxextra)/.*\.cpp$",
        matches(r'(?:^REGISTER_CONVERTER\(\w+, *|\binsert\(\s*")(\w+)'),
    ),
}


def facts(registry: Registry, texts: Mapping[str, str]) -> Facts:
    """Return the rows of one version.

    Raises:
        ValueError: an operator is of no domain that is known.
    """
    found: dict[tuple[str, str], list[Row]] = {}
    for name, row in registry.names(texts):
        for key in _domain(name, registry.aliases, registry.made_up):
            rows = found.setdefault((key, registry.aliases.get(name, name)), [])
            if row not in rows:
                rows.append(row)
    found.pop(("-", ""), None)
    return {key: _best(rows) for key, rows in found.items() if key[0] != "-"}


def _best(rows: list[Row]) -> list[Row]:
    """Return rows without the narrower ones of those that are open to the end."""
    open_rows = [row for row in rows if row.opsets[1] is None and not row.conditions]
    if not open_rows:
        return rows
    widest = min(open_rows, key=lambda row: row.opsets[0] or 0)
    return [widest, *(row for row in rows if row not in open_rows)]


def _domain(name: str, aliases: Mapping[str, str], made_up: frozenset[str]) -> list[str]:
    """Return the domains of an operator that a source names without one; ``-`` where it has none.

    Raises:
        ValueError: no domain has it.
    """
    name = aliases.get(name, name)
    found = [domain for domain in ("", "ai.onnx.ml") if since_versions(domain, name)]
    if name in made_up:
        found.append("")
    if name in _microsoft():
        found.append("com.microsoft")
    if not found:
        if name not in UNDEFINED and name:
            raise ValueError(f"no domain has {name}")
        return ["-"]
    return found[:1]


@cache
def _microsoft() -> frozenset[str]:
    """Return the operators of ONNX Runtime's own domain that have a kernel."""
    found = (read_operators(name) for name in ("onnxruntime", "onnxruntime-cuda"))
    return frozenset(
        name for file in found if file for domain, name in file.facts if domain == "com.microsoft"
    )


#: What sources register beside onnx's operators: fused ones, of frameworks, of their own, and of
#: domains or opsets that no model of today has.
UNDEFINED = frozenset({
    "ACos", "ACosh", "Adagrad", "Adam", "adaptive_avg_pool2d", "adaptive_max_pool2d", "Affine",
    "AllClassNMS", "ASin", "ASinh", "ATan", "ATanh", "ATen", "BiasAdd", "BiasSplitGelu", "CeLU",
    "ConstantFill", "ConstantLike", "Crop", "Dropout_6", "Dropout_7", "DynamicScale", "Erfc",
    "Erfinv", "Expm1", "FC", "fMHA_V2", "fMHCA", "Gradient", "GroupNorm", "ImageScaler", "Input",
    "LayerNorm", "Log1p", "Momentum", "MXFixNeuron", "MXQuantizeDequantize", "NhwcConv",
    "noop_reducedncnn", "ParametricSoftplus", "PixelShuffle", "QLinearConvTranspose",
    "raster_grad", "RDiv", "Reorg", "Rsqrt", "RSub", "Scale", "ScaleAndTranslate", "ScaledTanh",
    "SeqLen2Spatial", "ShuffleChannel", "Softmax_1", "Softmax_13", "SoftPlus", "SpatialBN",
    "SplitGeLU", "texture", "texture_mipmap",
})  # fmt: skip


def texts_at(clone: Path, revision: str, path: str) -> dict[str, str]:
    """Return the texts of the files of a revision whose paths match."""
    found = [file for file in files(clone, revision, ".") if re.match(path, file)]
    if not found:
        raise LookupError(f"{revision} has no file {path}")
    return {file: git(clone, "show", f"{revision}:{file}") for file in found}


def write_all(
    folder: Path, registries: Mapping[str, Registry], names: Iterable[str], maker: str
) -> None:
    """Write the files of some runtimes, or of all where none is named."""
    for runtime in names or registries:
        registry = registries[runtime]
        clone = folder / registry.repository.replace("/", "+") / "repo"
        releases = []
        for version, tag in registry.tags.items():
            is_commit = re.fullmatch(r"[0-9a-f]{8,40}\^?", tag) and not tag.isdigit()
            revision = tag if is_commit else f"refs/tags/{tag}"
            texts = texts_at(clone, revision, registry.path)
            paths = sorted(texts)
            commit, date = git(
                clone, "log", "-1", "--format=%h %cs", "--abbrev=10", revision, "--"
            ).split()
            where = paths[0] if len(paths) == 1 else str(Path(paths[0]).parent)
            source = Source(
                "document",
                f"{registry.repository} {where}, {commit if is_commit else tag}",
                date,
                ("ai.onnx",) if registry.complete and version not in registry.partial else (),
                registry.fallback.get(version, ""),
            )
            releases.append(Release(version, source, facts(registry, texts)))
            print(runtime, version, len(releases[-1].facts))
        written = write(
            runtime, maker, releases, conditions=registry.conditions, made_up=registry.made_up
        )
        print(written, written.stat().st_size)


if __name__ == "__main__":
    write_all(Path(sys.argv[1]), REGISTRIES, sys.argv[2:], "registries")
