"""Random models that make, change and read sequences."""

from __future__ import annotations

import random

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, checker, helper

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL

#: What every program is run on: two conditions, positions from the front and the back.
FEEDS = [
    {
        "x": np.arange(6, dtype=np.float32).reshape(2, 3),
        "w": np.arange(rows * 3, dtype=np.float32).reshape(rows, 3) + 100,
        "c": np.array(flag),
        "p": np.array(place),
        "n": np.array(rounds),
    }
    for flag, place, rows, rounds in ((True, 0, 1, 2), (False, -1, 3, 1), (True, 1, 0, 3))
]


class Program:
    """A model of nodes drawn at random.

    Every sequence has at least two elements at any time, so that no position is out of bounds.
    """

    def __init__(self, seed: int, opset: int) -> None:
        """Draw it."""
        self._random = random.Random(seed)
        self._opset = opset
        self._count = 0
        self._outputs: list[tuple[str, int, int]] = []

    def model(self) -> ModelProto:
        """The model."""
        nodes: list[NodeProto] = []
        sequences = self._steps(nodes, [self._construct(nodes, static=None)], 5, depth=0)
        for sequence in sequences[-2:]:
            self._read(nodes, sequence)
        graph = helper.make_graph(
            nodes,
            "program",
            [
                helper.make_tensor_value_info("x", FLOAT, [2, 3]),
                helper.make_tensor_value_info("w", FLOAT, ["rows", 3]),
                helper.make_tensor_value_info("c", BOOL, []),
                helper.make_tensor_value_info("p", INT64, []),
                helper.make_tensor_value_info("n", INT64, []),
            ],
            [
                helper.make_tensor_value_info(name, elem_type, [None] * rank)
                for name, elem_type, rank in self._outputs
            ],
        )
        found = helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", self._opset)], ir_version=8
        )
        checker.check_model(found, full_check=True)
        return found

    def _name(self, hint: str) -> str:
        self._count += 1
        return f"{hint}{self._count}"

    def _add(
        self, nodes: list[NodeProto], op_type: str, inputs: list[str], **values: object
    ) -> str:
        name = self._name(op_type.lower())
        nodes.append(helper.make_node(op_type, inputs, [name], name=name, **values))
        return name

    def _tensor(self, nodes: list[NodeProto], static: bool) -> str:
        name = "x" if static else self._random.choice(["x", "w"])
        if self._random.random() < 0.5:
            return self._add(nodes, "Neg", [name])
        return name

    def _construct(self, nodes: list[NodeProto], static: bool | None) -> str:
        if static is None:
            static = self._random.random() < 0.4
        self._static = static
        kind = self._random.choice(["list", "split", "empty"])
        if kind == "split" and not static:
            wide = self._add(nodes, "Concat", ["w", "x"], axis=0)
            return self._add(nodes, "SplitToSequence", [wide, self._const(nodes, 1)], axis=0)
        items = [self._tensor(nodes, static) for _ in range(3)]
        if kind == "empty":
            name = self._add(nodes, "SequenceEmpty", [])
            for item in items:
                name = self._add(nodes, "SequenceInsert", [name, item])
            return name
        return self._add(nodes, "SequenceConstruct", items)

    def _const(self, nodes: list[NodeProto], value: object) -> str:
        name = self._name("constant")
        array = np.asarray(value, np.int64)
        tensor = helper.make_tensor(name, INT64, array.shape, array.reshape(-1).tolist())
        nodes.append(helper.make_node("Constant", [], [name], name=name, value=tensor))
        return name

    def _place(self, nodes: list[NodeProto]) -> str:
        return self._random.choice(["p", self._const(nodes, self._random.choice([0, 1, -1]))])

    def _steps(
        self, nodes: list[NodeProto], sequences: list[str], count: int, depth: int
    ) -> list[str]:
        """Sequences made of the last one, step by step."""
        sequences = list(sequences)
        for _ in range(count):
            kinds = ["insert", "insert", "insert_erase", "identity"]
            if depth < 2:
                kinds += ["if", "loop", "if", "loop"]
            getattr(self, f"_step_{self._random.choice(kinds)}")(nodes, sequences, depth)
        return sequences

    def _step_insert(self, nodes: list[NodeProto], sequences: list[str], depth: int) -> None:
        inputs = [sequences[-1], self._tensor(nodes, self._static)]
        if self._random.random() < 0.6:
            inputs.append(self._place(nodes))
        sequences.append(self._add(nodes, "SequenceInsert", inputs))

    def _step_insert_erase(self, nodes: list[NodeProto], sequences: list[str], depth: int) -> None:
        self._step_insert(nodes, sequences, depth)
        inputs = [sequences[-1]]
        if self._random.random() < 0.6:
            inputs.append(self._place(nodes))
        sequences.append(self._add(nodes, "SequenceErase", inputs))

    def _step_identity(self, nodes: list[NodeProto], sequences: list[str], depth: int) -> None:
        if self._opset >= 14:
            sequences.append(self._add(nodes, "Identity", [sequences[-1]]))

    def _sequence_info(self, name: str) -> object:
        return helper.make_tensor_sequence_value_info(name, FLOAT, None)

    def _branch(self, sequences: list[str], depth: int, steps: int) -> GraphProto:
        nodes: list[NodeProto] = []
        made = self._steps(nodes, sequences[-1:], steps, depth + 1)
        if made[-1] == sequences[-1]:
            made.append(self._add(nodes, "SequenceInsert", [made[-1], "x"]))
        total = self._add(nodes, "SequenceLength", [made[-1]])
        return helper.make_graph(
            nodes,
            self._name("branch"),
            [],
            [self._sequence_info(made[-1]), helper.make_tensor_value_info(total, INT64, [])],
        )

    def _step_if(self, nodes: list[NodeProto], sequences: list[str], depth: int) -> None:
        branches = [self._branch(sequences, depth, self._random.randint(1, 2)) for _ in range(2)]
        name, total = self._name("if"), self._name("total")
        nodes.append(
            helper.make_node(
                "If",
                ["c"],
                [name, total],
                name=name,
                then_branch=branches[0],
                else_branch=branches[1],
            )
        )
        sequences.append(name)
        if depth == 0:
            self._outputs.append((total, INT64, 0))

    def _step_loop(self, nodes: list[NodeProto], sequences: list[str], depth: int) -> None:
        number, going = self._name("round"), self._name("going")
        current, again = self._name("current"), self._name("again")
        inner = [helper.make_node("Identity", [going], [again], name=again)]
        made = self._steps(inner, [current], self._random.randint(1, 2), depth + 1)
        if made[-1] == current:
            made.append(self._add(inner, "SequenceInsert", [current, "x"]))
        total = self._add(inner, "SequenceLength", [made[-1]])
        body = helper.make_graph(
            inner,
            self._name("body"),
            [
                helper.make_tensor_value_info(number, INT64, []),
                helper.make_tensor_value_info(going, BOOL, []),
                self._sequence_info(current),
            ],
            [
                helper.make_tensor_value_info(again, BOOL, []),
                self._sequence_info(made[-1]),
                helper.make_tensor_value_info(total, INT64, []),
            ],
        )
        name, totals = self._name("loop"), self._name("totals")
        count = self._random.choice(["n", self._const(nodes, 2)])
        nodes.append(
            helper.make_node(
                "Loop", [count, "", sequences[-1]], [name, totals], name=name, body=body
            )
        )
        sequences.append(name)
        if depth == 0:
            self._outputs.append((totals, INT64, 1))

    def _read(self, nodes: list[NodeProto], sequence: str) -> None:
        place = self._place(nodes)
        self._outputs.append((self._add(nodes, "SequenceAt", [sequence, place]), FLOAT, 2))
        self._outputs.append((self._add(nodes, "SequenceLength", [sequence]), INT64, 0))
        axis = self._random.choice([0, 1, -1, -2]) if self._static else 0
        whole = self._add(nodes, "ConcatFromSequence", [sequence], axis=axis)
        self._outputs.append((whole, FLOAT, 2))
        if self._static:
            axis = self._random.choice([0, 1, 2, -1])
            values = {"axis": axis, "new_axis": 1}
            whole = self._add(nodes, "ConcatFromSequence", [sequence], **values)
            self._outputs.append((whole, FLOAT, 3))
