"""Pictures of the Reduce and Softmax family: every boundary, before and after.

The pictures are of models that are converted while the documentation is built.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import onnx

import onnxreduce
from docs.generator.pictures import picture
from onnxreduce_cli import schemas
from onnxreduce_cli.schemas import REDUCE, SOFTMAX
from onnxreduce_cli.steps import audit
from onnxreduce_cli.steps.dispatch import step_for
from onnxreduce_cli.steps.registry import Direction, Step

#: A model of one node. What it reads besides x, such as axes, stands in ``more``.
MODEL = """<ir_version: 10, opset_import: ["" : {opset}]>
g ({dtype}{shape} x{more}) => ({dtype}{result} y)
{constants} {{ y = {op_type}{attributes}(x{inputs}) }}"""


@dataclass(frozen=True)
class Example:
    """A node whose way across a boundary is shown.

    Attributes:
        caption: what is special about it.
        attributes: of the node, as text; may be empty.
        axes: its axes as an input: a constant such as ``{1}``, or ``""`` for an input of the model;
            None if it has no such input.
        dtype: of its input and output.
        shape: of its input, as text; ``[]`` for any rank.
        result: of its output.
    """

    caption: str
    attributes: str = ""
    axes: str | None = None
    dtype: str = "float"
    shape: str = "[2,3,4]"
    result: str = "[2,1,4]"

    def model(self, op_type: str, opset: int) -> onnx.ModelProto:
        """Return the model."""
        given = self.axes == ""
        text = MODEL.format(
            opset=opset,
            dtype=self.dtype,
            shape=self.shape,
            result=self.result,
            more=", int64[1] axes" if given else "",
            constants=f"<int64[1] axes = {self.axes}>" if self.axes else "",
            op_type=op_type,
            attributes=f"<{self.attributes}>" if self.attributes else "",
            inputs="" if self.axes is None else ", axes",
        )
        return onnx.parser.parse_model(text)


def examples(op_type: str, boundary: int, direction: Direction) -> Iterator[Example]:
    """Nodes that show what happens at a boundary, first the plainest."""
    if op_type in SOFTMAX:
        yield from _softmax_examples(boundary, direction)
        return
    as_input = (boundary if direction == "down" else boundary - 1) >= axes_input(op_type)
    plain = {"axes": "{1}"} if as_input else {"attributes": "axes=[1]"}
    if boundary == 11 and direction == "down":
        yield Example("An axis counted from the back", "axes=[-2]")
        yield Example("The same of any rank", "axes=[-2]", shape="[]", result="[]")
    elif boundary == axes_input(op_type):
        yield Example("Axes that are known", **plain)
        if direction == "down":
            shape = {"shape": "[rows,columns]", "result": "[a,b]"}
            yield Example("Axes that are known at run time only", axes="", **shape)
            noop = "noop_with_empty_axes=1"
            yield Example("No axes, and nothing to be done then", noop, result="[2,3,4]")
    else:
        dtype = DTYPES.get((boundary, direction), "float")
        yield Example(f"A node of {dtype}", dtype=dtype, **plain)
    if (boundary, direction) == (13, "down"):
        yield Example("A node of bfloat16", dtype="bfloat16", **plain)


#: Dtypes that a boundary brings to, or takes from, the operators that have it.
DTYPES = {(12, "down"): "int8", (20, "down"): "bool", (28, "up"): "int32"}


def axes_input(op_type: str) -> int:
    """Return the opset from which on axes are an input."""
    return 13 if op_type == "ReduceSum" else 18


def _softmax_examples(boundary: int, direction: Direction) -> Iterator[Example]:
    same = {"result": "[2,3,4]"}
    if (boundary, direction) == (11, "up"):
        yield Example("An axis of the input", "axis=1", **same)
        yield Example("An axis that is the rank: each element by itself", "axis=3", **same)
    elif (boundary, direction) == (11, "down"):
        yield Example("An axis counted from the back", "axis=-1", **same)
        yield Example("The same of any rank", "axis=-1", shape="[]", result="[]")
    elif direction == "up":
        yield Example("The last axis", "axis=2", **same)
        yield Example("All dimensions from an axis on", "axis=1", **same)
    else:
        yield Example("The last axis", "axis=2", **same)
        yield Example("Another axis", "axis=1", **same)
        yield Example("Another axis, of any rank", "axis=1", shape="[]", result="[]")


def pictures() -> str:
    """All operators, each folded until it is opened."""
    return "\n".join(
        f'<details id="{op_type}"><summary>{op_type}</summary>\n\n{_unnumbered(text)}\n</details>\n'
        for op_type, text in parts().items()
    )


def _unnumbered(text: str) -> str:
    """Return a text with lines of bold letters for its headings, which no fold can hold."""
    return re.sub(r"^##+ (.*)$", r"**\1**", text, flags=re.MULTILINE)


def parts() -> dict[str, str]:
    """What is shown of each operator."""
    return {op_type: _part(op_type) for op_type in (*sorted(REDUCE), *sorted(SOFTMAX))}


def _part(op_type: str) -> str:
    since = schemas.versions(op_type)
    listed = ", ".join(str(version) for version in since)
    lines = [
        f"Its definition is of the opsets {listed}. `onnxreduce ops {op_type}` prints the rules, "
        "and where the steps are.",
    ]
    for boundary in since[1:]:
        change = audit.definition_change(op_type, boundary)
        what = change.what if change else "Not declared."
        lines += ["", f"## Opset {boundary}", "", what]
        for direction in ("up", "down"):
            lines += _crossing(op_type, step_for(op_type, boundary, direction), boundary)
    return "\n".join([*lines, *_written_out(op_type)]) + "\n"


def _crossing(op_type: str, step: Step, boundary: int) -> Iterator[str]:
    ends = (boundary - 1, boundary) if step.direction == "up" else (boundary, boundary - 1)
    yield ""
    yield f"### {ends[0]} to {ends[1]}"
    yield ""
    if step.status == "unchanged":
        yield "The node stays as it is."
    else:
        yield f"*{step.status.capitalize()}*: {step.full_description}."
    for example in examples(op_type, boundary, step.direction):
        yield ""
        yield from _figure(example.caption, example.model(op_type, ends[0]), *ends)


def _figure(caption: str, model: onnx.ModelProto, before: int, after: int) -> Iterator[str]:
    """Show a model before and after, or why there is none after."""
    yield f"**{caption}:**"
    yield ""
    try:
        result = onnxreduce.convert(model, after, check=False)
    except onnxreduce.ConversionError as error:
        yield "```text"
        yield from (str(blocker) for blocker in error.blockers)
        yield "```"
        return
    yield from _pair(model, result, f"opset {before}", f"opset {after}")


def _pair(before: onnx.ModelProto, after: onnx.ModelProto, *captions: str) -> Iterator[str]:
    yield "```{raw} html"
    yield '<div class="before-after">'
    for caption, model in zip(captions, (before, after), strict=True):
        yield f"<figure>{picture(model)}<figcaption>{caption}</figcaption></figure>"
    yield "</div>"
    yield "```"


def _written_out(op_type: str) -> Iterator[str]:
    """What `--expand` makes of the operator, where it has a function body."""
    newest = schemas.versions(op_type)[-1]
    last = "axis=-1" if op_type in SOFTMAX else ""
    result = "[2,3,4]" if op_type in SOFTMAX else "[2,1,4]"
    example = Example("", last, None if last else "{1}", result=result)
    model = example.model(op_type, newest)
    try:
        expanded = onnxreduce.convert(model, newest, expand=[op_type], check=False)
    except onnxreduce.OnnxreduceError:
        return
    yield ""
    yield "## Written out"
    yield ""
    yield f"What `--expand {op_type}` makes of it, and `--contract {op_type}` takes back:"
    yield ""
    yield from _pair(model, expanded, "as one node", "in others")
