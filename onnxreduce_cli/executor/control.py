"""Control flow: If, Loop and Scan, in every version.

Source: If and Loop 1 to 25, Scan 8 (batches, sequence lengths) and 9 to 25 (any axis). The
versions from 13 on only widen the types: sequences, optionals, more elements.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from onnxreduce_cli.executor.axes import one_axis, vector
from onnxreduce_cli.executor.dtypes import BOOL, INT64, STRING, Array, RuntimeValue
from onnxreduce_cli.executor.errors import Invalid, NotSupported
from onnxreduce_cli.executor.registry import Call, Subgraph, SubgraphRunner, kernel


def _truth(name: str, value: Array) -> bool:
    if value.size != 1:
        raise Invalid(f"{name} has shape {value.shape}, it must hold one value")
    return bool(value.reshape(()))


@kernel("If", 1, 11, 13, 16, 19, 21, 23, 24, 25, scoped=True)
def if_(call: Call, scope: SubgraphRunner, condition: Array) -> tuple[RuntimeValue, ...]:
    """Run `then_branch` or `else_branch` and return its outputs."""
    branch = "then_branch" if _truth("cond", condition) else "else_branch"
    return tuple(scope.run(call.attrs[branch], []))


@kernel("Loop", 1, 11, 13, 16, 19, 21, 23, 24, 25, scoped=True)
def loop(
    call: Call,
    scope: SubgraphRunner,
    trips: Array | None = None,
    condition: Array | None = None,
    *initial: RuntimeValue,
) -> tuple[RuntimeValue, ...]:
    """Run `body` while the trip count and the condition, where given, allow it.

    The body takes (iteration, condition, carried...) and returns (condition, carried...,
    scanned...); scanned values are stacked along a new first axis. Without a condition
    input the body's condition is ignored.
    """
    body: Subgraph = call.attrs["body"]
    carried = list(initial)
    if body.n_inputs != 2 + len(carried) or body.n_outputs < 1 + len(carried):
        raise Invalid(
            f"the body has {body.n_inputs} inputs and {body.n_outputs} outputs, which does not "
            f"fit {len(carried)} carried values"
        )
    scans: list[list[RuntimeValue]] = [[] for _ in range(body.n_outputs - 1 - len(carried))]
    limit = None
    if trips is not None:
        if trips.size != 1:
            raise Invalid(f"M has shape {trips.shape}, it must hold one value")
        limit = int(trips.reshape(()))
    go_on = condition is None or _truth("cond", condition)
    if limit is None and condition is None:
        raise NotSupported("without a trip count and a condition the loop has no end")
    # Exporters also declare both with one dimension, and ONNX Runtime passes them with it.
    counter, flag = ((1,) if rank == 1 else () for rank in body.input_ranks[:2])
    index = 0
    while go_on and (limit is None or index < limit):
        results = scope.run(
            body, [np.full(counter, index, INT64), np.full(flag, go_on, BOOL), *carried]
        )
        following = results[0]
        if condition is not None:
            if not isinstance(following, np.ndarray):
                raise Invalid("the body's condition is no tensor")
            go_on = _truth("the body's condition", following)
        carried = results[1 : 1 + len(carried)]
        for scan, value in zip(scans, results[1 + len(carried) :], strict=True):
            scan.append(value)
        index += 1
    empty = body.empty[1 + len(carried) :]
    return (*carried, *(_stacked(s, 0, e) for s, e in zip(scans, empty, strict=True)))


def _stacked(values: list[RuntimeValue], axis: int, empty: Array | None = None) -> Array:
    arrays = [value for value in values if isinstance(value, np.ndarray)]
    if len(arrays) != len(values):
        raise Invalid("a scanned value is no tensor")
    if not arrays and empty is not None:
        return np.moveaxis(empty, 0, one_axis(axis, empty.ndim))
    if not arrays:
        raise NotSupported(
            "the body never ran, so the type and shape of its scan outputs are unknown"
        )
    if any(array.shape != arrays[0].shape for array in arrays):
        raise Invalid("a scanned value changes its shape between iterations")
    return np.stack(arrays, axis=one_axis(axis, arrays[0].ndim + 1))


def _flags(call: Call, name: str, count: int) -> list[int]:
    given = list(call.attrs.get(name, ())) or [0] * count
    if len(given) != count:
        raise Invalid(f"{name} has {len(given)} entries, {count} are needed")
    return given


@kernel("Scan", 9, 11, 16, 19, 21, 23, 24, 25, scoped=True)
def scan_9(call: Call, scope: SubgraphRunner, *values: Array) -> tuple[RuntimeValue, ...]:
    """Run `body` on the slices of the scan inputs, and pass the states on from each to the next."""
    body: Subgraph = call.attrs["body"]
    n_scans = int(call.attrs["num_scan_inputs"])
    n_states = len(values) - n_scans
    n_outputs = body.n_outputs - n_states
    if not 0 < n_scans <= len(values) or n_outputs < 0 or body.n_inputs != len(values):
        raise Invalid("num_scan_inputs, the inputs and the body do not fit together")
    scans = list(values[n_states:])
    directions = _flags(call, "scan_input_directions", n_scans)
    for index, axis in enumerate(_flags(call, "scan_input_axes", n_scans)):
        moved = np.moveaxis(scans[index], one_axis(axis, scans[index].ndim), 0)
        scans[index] = moved[::-1] if directions[index] else moved
    carried, stacks, empties = _scan(scope, body, list(values[:n_states]), scans)
    output_directions = _flags(call, "scan_output_directions", n_outputs)
    output_axes = _flags(call, "scan_output_axes", n_outputs)
    results = [
        _stacked(stack[::-1] if backward else stack, axis, empty)
        for stack, backward, axis, empty in zip(
            stacks, output_directions, output_axes, empties, strict=True
        )
    ]
    return (*carried, *results)


def _scan(
    scope: SubgraphRunner, body: Subgraph, carried: list[RuntimeValue], scans: list[Array]
) -> tuple[list[RuntimeValue], list[list[RuntimeValue]], list[Array | None]]:
    """Run the body over the first axis of `scans`.

    Returns the last states, all outputs, and for each output its value where there is no slice.
    """
    length = scans[0].shape[0]
    if any(scan.shape[0] != length for scan in scans):
        raise Invalid("the scan inputs differ in length")
    n_states = len(carried)
    stacks: list[list[RuntimeValue]] = [[] for _ in range(body.n_outputs - n_states)]
    empties = list(body.empty[n_states:])
    if not length and any(empty is None for empty in empties):
        # The shape of a slice is known, and running the body on one gives the shapes of outputs.
        results = scope.run(body, [*carried, *(_blank(scan) for scan in scans)])
        empties = [np.asarray(value)[None][:0] for value in results[n_states:]]
    for index in range(length):
        results = scope.run(body, [*carried, *(np.asarray(scan[index]) for scan in scans)])
        carried = results[:n_states]
        for stack, value in zip(stacks, results[n_states:], strict=True):
            stack.append(value)
    return carried, stacks, empties


def _blank(scan: Array) -> Array:
    return np.full(scan.shape[1:], "" if scan.dtype == STRING else 0, scan.dtype)


@kernel("Scan", 8, scoped=True)
def scan_8(
    call: Call, scope: SubgraphRunner, lengths: Array | None, *values: Array
) -> tuple[RuntimeValue, ...]:
    """Run `body` on the sequence (axis 1) of each batch entry (axis 0), up to its own length.

    Outputs of shorter sequences are padded with zeros to the longest.
    """
    body: Subgraph = call.attrs["body"]
    n_scans = int(call.attrs["num_scan_inputs"])
    n_states = len(values) - n_scans
    n_outputs = body.n_outputs - n_states
    if not 0 < n_scans <= len(values) or n_outputs < 0 or body.n_inputs != len(values):
        raise Invalid("num_scan_inputs, the inputs and the body do not fit together")
    directions = _flags(call, "directions", n_scans)
    scans = values[n_states:]
    if any(value.ndim < 1 for value in values) or any(scan.ndim < 2 for scan in scans):
        raise Invalid("states need a batch axis, scan inputs a batch and a sequence axis")
    batch, longest = scans[0].shape[:2]
    if any(value.shape[0] != batch for value in values):
        raise Invalid("the states and the scan inputs differ in the size of their batches")
    counts = [longest] * batch if lengths is None else vector("sequence_lens", lengths)
    if len(counts) != batch or any(not 0 <= count <= longest for count in counts):
        raise Invalid(f"sequence_lens {counts} does not fit {batch} sequences of {longest}")
    states: list[list[RuntimeValue]] = [[] for _ in range(n_states)]
    outputs: list[list[RuntimeValue]] = [[] for _ in range(n_outputs)]
    for entry, count in enumerate(counts):
        parts = [
            scan[entry, :count][::-1] if backward else scan[entry, :count]
            for scan, backward in zip(scans, directions, strict=True)
        ]
        start: list[RuntimeValue] = [np.asarray(value[entry]) for value in values[:n_states]]
        carried, stacks, empties = _scan(scope, body, start, parts)
        for kept, state in zip(states, carried, strict=True):
            kept.append(state)
        for made, stack, empty in zip(outputs, stacks, empties, strict=True):
            rows = _stacked(stack, 0, empty)
            rest: Any = [(0, longest - count)] + [(0, 0)] * (rows.ndim - 1)
            made.append(np.pad(rows, rest))
    return (*(_stacked(state, 0) for state in states), *(_stacked(out, 0) for out in outputs))


@kernel("SequenceMap", 17, scoped=True)
def sequence_map(
    call: Call, scope: SubgraphRunner, first: list[RuntimeValue], *rest: Any
) -> tuple[RuntimeValue, ...]:
    """Run `body` on each element of the first sequence, with those of others and whole tensors."""
    body: Subgraph = call.attrs["body"]
    results: list[list[RuntimeValue]] = [[] for _ in range(body.n_outputs)]
    for index, item in enumerate(first):
        values = [value[index] if isinstance(value, list) else value for value in rest]
        for collected, value in zip(results, scope.run(body, [item, *values]), strict=True):
            collected.append(value)
    return tuple(results)
