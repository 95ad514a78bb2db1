"""A made-up release of onnx: one more opset, in which the axes of ReduceSum become required.

Importing this registers it for the whole process, and nothing takes that back; so tests import it
in a process of their own, pytest's with ``-p tests.next_opset``.
"""

from __future__ import annotations

from onnx import defs
from onnx.defs import OpSchema

OPSET = defs.onnx_opset_version() + 1


def _register() -> None:
    was = defs.get_schema("ReduceSum")
    data, axes = was.inputs
    required = OpSchema.FormalParameter(axes.name, axes.type_str, axes.description)
    constraints = [
        (item.type_param_str, item.allowed_type_strs, item.description)
        for item in was.type_constraints
    ]
    defs.register_schema(
        OpSchema(
            was.name,
            was.domain,
            OPSET,
            was.doc,
            inputs=[data, required],
            outputs=was.outputs,
            type_constraints=constraints,
            attributes=list(was.attributes.values()),
        )
    )


_register()
