"""The equations of Einsum: on an invalid one shape inference may never end."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from onnx import AttributeProto, FunctionProto, NodeProto

from onnxreduce_cli.model.graph.attributes import find, of_call
from onnxreduce_cli.model.graph.domains import is_default
from onnxreduce_cli.model.graph.scope import FunctionKey, Scope, called_key, function_label
from onnxreduce_cli.text import quoted

_TERM = re.compile(r"[A-Za-z]*(\.\.\.[A-Za-z]*)?")


def is_equation(equation: str) -> bool:
    """Return whether a text is an equation, such as ``"...ij,jk->...ik"``.

    Its terms are letters, perhaps with an ellipsis. Each letter of the output occurs there once,
    and in an input.
    """
    left, _, output = equation.replace(" ", "").partition("->")
    labels = output.replace("...", "")
    return (
        all(_TERM.fullmatch(term) for term in (*left.split(","), output))
        and len(set(labels)) == len(labels)
        and set(labels) <= set(left)
    )


class Equations:
    """Checks the equations in a model: attributes of Einsum, and of functions that pass them on."""

    def __init__(
        self, scopes: Sequence[Scope], functions: Mapping[FunctionKey, FunctionProto]
    ) -> None:
        """Find the attributes of functions that become equations, directly or by further calls.

        Args:
            scopes: the scopes of the model.
            functions: its functions, by domain, name and overload.
        """
        #: The names of these attributes, by the identity of their function.
        self._handed_on: dict[int, set[str]] = {}
        bodies = [scope for scope in scopes if scope.function is not None]
        waiting = list(_own(bodies))
        calls = _calls(bodies, functions) if waiting else {}
        while waiting:
            function, name = waiting.pop()
            known = self._handed_on.setdefault(id(function), set())
            if name in known:
                continue
            known.add(name)
            for caller, call in calls.get(id(function), ()):
                given = find(call, name)
                if given is not None and given.ref_attr_name:
                    waiting.append((caller, given.ref_attr_name))

    def problem(self, node: NodeProto) -> str | None:
        """Return what is wrong with an Einsum; None if nothing is."""
        equation = find(node, "equation")
        if equation is None or _is_sound(equation):
            return None
        return f"its attribute 'equation' is {quoted(_text(equation))}, which is none"

    def call_problem(self, node: NodeProto, function: FunctionProto) -> str | None:
        """Return what is wrong with an equation that a call passes on; None if nothing is."""
        names = self._handed_on.get(id(function), ())
        given = of_call(node, function)
        for name in sorted(names):
            equation = given.get(name)
            if equation is not None and not _is_sound(equation):
                return (
                    f"its attribute {quoted(name)} is {quoted(_text(equation))}, which is no "
                    f"equation, and function {function_label(function)} has it for one"
                )
        return None


def _is_sound(equation: AttributeProto) -> bool:
    return bool(equation.ref_attr_name) or is_equation(_text(equation))


def _own(bodies: Iterable[Scope]) -> Iterator[tuple[FunctionProto, str]]:
    """Yield the attributes of functions to which an Einsum of their bodies refers."""
    for scope in bodies:
        if "Einsum" not in scope.op_types:
            continue
        for op_type, node in zip(scope.op_types, scope.nodes, strict=True):
            if op_type == "Einsum" and is_default(node.domain):
                equation = find(node, "equation")
                if equation is not None and equation.ref_attr_name and scope.function is not None:
                    yield scope.function, equation.ref_attr_name


def _calls(
    bodies: Iterable[Scope], functions: Mapping[FunctionKey, FunctionProto]
) -> dict[int, list[tuple[FunctionProto, NodeProto]]]:
    """Return the nodes of functions that call each function, by the identity of the latter."""
    found: dict[int, list[tuple[FunctionProto, NodeProto]]] = {}
    for scope in bodies:
        for node in scope.nodes:
            called = functions.get(called_key(node))
            if called is not None and scope.function is not None:
                found.setdefault(id(called), []).append((scope.function, node))
    return found


def _text(equation: AttributeProto) -> str:
    return equation.s.decode(errors="replace")
