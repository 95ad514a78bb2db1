"""RNN, GRU and LSTM, in every version.

Source: RNN, LSTM 1 to 22, GRU 1, 3 (`linear_before_reset`), 7 to 22; 14 brought `layout`.
Computed in float64, one rounding at the end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from onnxreduce_cli.executor.axes import vector
from onnxreduce_cli.executor.dtypes import FLOAT64, Array, to_dtype
from onnxreduce_cli.executor.elementwise import sigmoid
from onnxreduce_cli.executor.errors import Invalid, NotSupported
from onnxreduce_cli.executor.registry import Call, kernel

Activation: TypeAlias = Callable[[Array], Array]
# (input of one time step, state) to the next state; state[0] is the hidden one.
Cell: TypeAlias = Callable[[Array, tuple[Array, ...]], tuple[Array, ...]]

_ACTIVATIONS: dict[str, Activation] = {
    "Relu": lambda x: np.maximum(x, 0.0),
    "Tanh": np.tanh,
    "Sigmoid": sigmoid,
    "LeakyRelu": lambda x: np.where(x < 0, np.float32(0.01) * x, x),
    "ThresholdedRelu": lambda x: np.where(x >= 1.0, x, 0.0),
    "HardSigmoid": lambda x: np.clip(np.float32(0.2) * x + 0.5, 0.0, 1.0),
    "Elu": lambda x: np.where(x >= 0, x, np.expm1(np.minimum(x, 0.0))),
    "Softsign": lambda x: x / (1 + np.absolute(x)),
    "Softplus": lambda x: np.logaddexp(x, 0.0),
}
_DIRECTIONS = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}
_PER_CELL = {"RNN": ("Tanh",), "GRU": ("Sigmoid", "Tanh"), "LSTM": ("Sigmoid", "Tanh", "Tanh")}
_GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


def _activations(call: Call) -> list[tuple[Activation, ...]]:
    """Return the activations of each direction, with inputs clipped as `clip` says."""
    defaults = _PER_CELL[call.op]
    directions = len(_DIRECTIONS[call.attrs["direction"]])
    names = list(call.attrs.get("activations", ())) or list(defaults) * directions
    # RNN's default has two names, the second for the direction that may be absent.
    if call.op == "RNN" and names == ["Tanh", "Tanh"]:
        names = names[:directions]
    if len(names) != len(defaults) * directions:
        raise Invalid(f"{len(names)} activations are given, {len(defaults) * directions} needed")
    clip = call.attrs.get("clip")

    def clipped(name: str) -> Activation:
        function = _ACTIVATIONS[name]
        if clip is None:
            return function
        return lambda x: function(np.clip(x, -clip, clip))

    found = [clipped(name) for name in names]
    count = len(defaults)
    return [tuple(found[i * count : (i + 1) * count]) for i in range(directions)]


def _check(call: Call) -> None:
    if call.attrs["direction"] not in _DIRECTIONS:
        raise Invalid(f"direction {call.attrs['direction']!r} is unknown")
    for name in call.attrs.get("activations", ()):
        if name not in _ACTIVATIONS:
            raise NotSupported(f"activation {name!r} is not implemented")
    if "activation_alpha" in call.attrs or "activation_beta" in call.attrs:
        raise NotSupported("activation_alpha and activation_beta are not implemented")
    if call.op == "LSTM" and call.attrs.get("input_forget", 0):
        raise NotSupported("which of the coupled gates is computed is not specified")
    if call.op == "LSTM" and "clip" in call.attrs:
        raise NotSupported("whether clip also bounds the cell before its activation is disputed")
    _activations(call)


def _rnn_cell(
    call: Call, w: Array, r: Array, b: Array, p: Array, acts: tuple[Activation, ...]
) -> Cell:
    wb, rb = np.split(b, 2)

    def step(x: Array, state: tuple[Array, ...]) -> tuple[Array, ...]:
        return (acts[0](x @ w.T + state[0] @ r.T + wb + rb),)

    return step


def _gru_cell(
    call: Call, w: Array, r: Array, b: Array, p: Array, acts: tuple[Activation, ...]
) -> Cell:
    (wz, wr, wh), (rz, rr, rh) = np.split(w, 3), np.split(r, 3)
    wbz, wbr, wbh, rbz, rbr, rbh = np.split(b, 6)
    linear_first = bool(call.attrs.get("linear_before_reset", 0))

    def step(x: Array, state: tuple[Array, ...]) -> tuple[Array, ...]:
        (h,) = state
        update = acts[0](x @ wz.T + h @ rz.T + wbz + rbz)
        reset = acts[0](x @ wr.T + h @ rr.T + wbr + rbr)
        if linear_first:
            hidden = acts[1](x @ wh.T + reset * (h @ rh.T + rbh) + wbh)
        else:
            hidden = acts[1](x @ wh.T + (reset * h) @ rh.T + rbh + wbh)
        return ((1 - update) * hidden + update * h,)

    return step


def _lstm_cell(
    call: Call, w: Array, r: Array, b: Array, p: Array, acts: tuple[Activation, ...]
) -> Cell:
    wb, rb = np.split(b, 2)
    pi, po, pf = np.split(p, 3)

    def step(x: Array, state: tuple[Array, ...]) -> tuple[Array, ...]:
        h, c = state
        i, o, f, g = np.split(x @ w.T + h @ r.T + wb + rb, 4, axis=-1)
        cell = acts[0](f + pf * c) * c + acts[0](i + pi * c) * acts[1](g)
        return acts[0](o + po * cell) * acts[2](cell), cell

    return step


_CELLS: dict[str, Any] = {"RNN": _rnn_cell, "GRU": _gru_cell, "LSTM": _lstm_cell}


def _sequence(
    x: Array, step: Cell, state: tuple[Array, ...], lengths: list[int], *, backward: bool
) -> tuple[Array, tuple[Array, ...]]:
    """Run one direction over (sequence, batch, input); steps after a sequence's end give zeros."""
    longest, batch = x.shape[:2]
    outputs = np.zeros((longest, batch, state[0].shape[-1]))
    counts = np.array(lengths)
    entries = np.arange(batch)
    for time in range(longest):
        live = (time < counts)[:, None]
        places = np.where(live[:, 0], counts - 1 - time, time) if backward else np.full(batch, time)
        following = step(x[places, entries], state)
        state = tuple(np.where(live, n, s) for n, s in zip(following, state, strict=True))
        outputs[places, entries] = np.where(live, state[0], 0.0)
    return outputs, state


def _lengths(call: Call, x: Array, w: Array, r: Array, lengths: Array | None) -> list[int]:
    """Check the shapes of (sequence, batch, input) and weights; return the sequence lengths."""
    longest, batch, size = x.shape
    hidden = r.shape[-1]
    rows = (len(_DIRECTIONS[call.attrs["direction"]]), _GATES[call.op] * hidden)
    if w.shape != (*rows, size) or r.shape != (*rows, hidden):
        shape = (batch, longest, size) if call.attrs.get("layout", 0) else x.shape
        raise Invalid(f"shapes of X {shape}, W {w.shape} and R {r.shape} do not fit together")
    if call.attrs.get("hidden_size", hidden) != hidden:
        raise Invalid(f"hidden_size is {call.attrs['hidden_size']}, R says {hidden}")
    counts = [longest] * batch if lengths is None else vector("sequence_lens", lengths)
    if len(counts) != batch or any(not 0 <= count <= longest for count in counts):
        raise Invalid(f"sequence_lens {counts} does not fit {batch} sequences of {longest}")
    return counts


def _recurrent(
    call: Call,
    x: Array,
    w: Array,
    r: Array,
    b: Array | None = None,
    lengths: Array | None = None,
    initial_h: Array | None = None,
    initial_c: Array | None = None,
    p: Array | None = None,
) -> tuple[Array, ...]:
    """Run a recurrent layer; return all hidden states, the last one and, for LSTM, the last cell.

    X is (sequence, batch, input), states are (directions, batch, hidden); with `layout` = 1
    the batch comes first in both.
    """
    batch_first = bool(call.attrs.get("layout", 0))
    data = x.astype(FLOAT64)
    if batch_first:
        data = np.swapaxes(data, 0, 1)
    counts = _lengths(call, data, w, r, lengths)
    batch, hidden, gates = data.shape[1], r.shape[-1], _GATES[call.op]
    states = [initial_h, initial_c] if call.op == "LSTM" else [initial_h]
    outputs, finals = [], []
    directions = _DIRECTIONS[call.attrs["direction"]]
    for index, (backward, acts) in enumerate(zip(directions, _activations(call), strict=True)):
        bias = np.zeros(2 * gates * hidden) if b is None else b[index].astype(FLOAT64)
        peephole = np.zeros(3 * hidden) if p is None else p[index].astype(FLOAT64)
        step = _CELLS[call.op](
            call, w[index].astype(FLOAT64), r[index].astype(FLOAT64), bias, peephole, acts
        )
        state = tuple(
            np.zeros((batch, hidden))
            if value is None
            else (value[:, index] if batch_first else value[index]).astype(FLOAT64)
            for value in states
        )
        if any(value.shape != (batch, hidden) for value in state):
            raise Invalid(f"an initial state does not have {batch} rows of {hidden}")
        output, final = _sequence(data, step, state, counts, backward=backward)
        outputs.append(output)
        finals.append(final)
    everything = np.stack(outputs, axis=1)
    lasts = [np.stack(values, axis=0) for values in zip(*finals, strict=True)]
    if batch_first:
        everything = everything.transpose(2, 0, 1, 3)
        lasts = [np.swapaxes(last, 0, 1) for last in lasts]
    return tuple(to_dtype(value, x.dtype) for value in (everything, *lasts))


kernel("RNN", 1, 7, 14, 22, check=_check)(_recurrent)
kernel("GRU", 1, 3, 7, 14, 22, check=_check)(_recurrent)
kernel("LSTM", 1, 7, 14, 22, check=_check)(_recurrent)
