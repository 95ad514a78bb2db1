"""What the table of targets says that a runtime makes of a model."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import NodeProto

from lab.measured import Verdict
from onnxreduce_cli.model.domains import default_opset
from onnxreduce_cli.model.types.facts import Facts
from onnxreduce_cli.targets.requirement import Target, find_target
from onnxreduce_cli.targets.verdict import TargetProblem, default_domain_nodes, target_problems

#: Names in `measured.json` that are not the targets' own; what follows a plus sign was run with it.
_NAMES = {"pnnx": "ncnn"}


def target_of(runtime: str) -> Target:
    """The target of a name in `measured.json`, such as ``opencv-4.6.0``."""
    name, _, version = runtime.removesuffix("-irmin").rpartition("-")
    if "+" in runtime:
        name, version = runtime.split("+")[0].partition("-")[::2]
        version = version or runtime.rpartition("-")[2]
    return find_target(f"{_NAMES.get(name, name)}=={version}")


def hits_of_model(target: Target, facts: Facts) -> Iterator[tuple[NodeProto, TargetProblem]]:
    """Return what a target gets wrong, or refuses, of the nodes of a model as it is."""
    for asked in default_domain_nodes(facts):
        yield from ((asked.node, hit) for hit in target_problems(target, asked, asked.source_opset))


def predicted(target: Target, facts: Facts) -> Verdict:
    """The verdict on a model of which `facts` are known; what is refused is not computed wrong."""
    opset = default_opset(facts.model) or 1
    if opset < target.oldest or (target.newest is not None and opset > target.newest):
        return "refused"
    if target.ir_version is not None and facts.model.ir_version > target.ir_version:
        return "refused"
    effects = {hit.effect for _, hit in hits_of_model(target, facts)}
    if "refused" in effects:
        return "refused"
    return "wrong" if effects else "right"
