"""Erf below opset 9, which introduced it, as polynomials."""

from __future__ import annotations

from dataclasses import dataclass

from onnx import TensorProto

from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.casts import cast, replace_and_cast_back, widened
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.polynomials import clipped, polynomial
from onnxreduce_cli.steps.registry import introduced


@dataclass(frozen=True, slots=True)
class _Polynomial:
    """A polynomial in ``(x - middle) / half``, by its coefficients, the lowest power first."""

    middle: float
    half: float
    coefficients: tuple[float, ...]

    def of(self, context: Context, name: str, elem_type: int) -> Value:
        """Return its values at a float tensor of dtype `elem_type`, in its shape."""
        op = context.op
        centred = op.Sub(name, context.scalar(self.middle, "number", elem_type))
        scale = context.scalar(1 / self.half, "number", elem_type)
        variable = op.Mul(centred, scale)
        return polynomial(context, variable, self.coefficients, elem_type)


@dataclass(frozen=True, slots=True)
class _Approximation:
    """The polynomials that give Erf in one dtype, right to a few units in the last place.

    Attributes:
        up_to_one: Erf(x) / x for x up to 1, of x * x.
        from_one: Log(1 - Erf(x)) for x from 1 on.
        end: the number from which on Erf(x) is 1.
    """

    up_to_one: _Polynomial
    from_one: _Polynomial
    end: float


# Through the Chebyshev nodes of [0, 1] and of [1, end], computed with 50 digits.
_IN_FLOAT = _Approximation(
    _Polynomial(
        0.5,
        0.5,
        (
            *(0.9654687387, -0.1405360973, 0.01985249714, -0.002285419545, 2.175135417e-4),
            *(-1.766906803e-5, 1.230605479e-6),
        ),
    ),
    _Polynomial(
        2.5,
        1.5,
        (
            *(-7.806815273, -8.029021011, -2.123760833, -0.03664757804, 0.01096184922),
            *(-0.003190305413, 8.803970815e-4, -2.274995038e-4, 4.195840012e-5),
        ),
    ),
    4.0,
)
_IN_DOUBLE = _Approximation(
    _Polynomial(
        0.5,
        0.5,
        (
            *(0.965468738669867308, -0.140536089022717119, 0.0198524966889837074),
            *(-0.0022854855611441132, 2.17517156041599315e-4, -1.75371694411248655e-5),
            *(1.22338273835989686e-6, -7.51156928659172683e-8, 4.11580058320814911e-9),
            *(-2.03522840581576898e-10, 9.16761959686580632e-12, -3.80788240631949552e-13),
            1.45438870794651157e-14,
        ),
    ),
    _Polynomial(
        3.5,
        2.5,
        (
            *(-14.1124374021481738, -18.165248970913016, -6.04220659213892587),
            *(-0.0816509097143913599, 0.0341284110786172605, -0.0143845484191425217),
            *(0.00595370450573682655, -0.00237399621623401325, 8.93576229284531632e-4),
            *(-3.0782663895153533e-4, 9.09032937113907354e-5, -1.84457876168501515e-5),
            *(-1.48733547016504876e-6, 4.49117909342300687e-6, -3.39624157790451779e-6),
            *(2.04515921414794672e-6, -9.57944664495551381e-7, 2.43763529161738445e-7),
            *(-8.37975569400899361e-8, 1.22850307281314521e-7, -3.45368278544928295e-8),
            *(-3.69078600605160043e-8, 1.74575281695570057e-8),
        ),
    ),
    6.0,
)


@introduced("Erf", 9, "polynomials, right to a few units in the last place")
def erf(context: Context) -> None:
    """``Erf(x)`` becomes ``Sign(x) * e``, where e is ``a * p(a * a)`` with ``a = Abs(x)`` below 1,
    and ``1 - Exp(q(a))`` above.

    Both are computed and one is taken, the other multiplied by 0: they are finite, as `a` is cut
    off where Erf is 1. The sign brings NaN back.
    """
    context = context.at(9)  # Sign was introduced by the same opset; its own step goes on.
    op = context.op
    data, elem_type, working = widened(context, TensorProto.FLOAT)
    approximation = _IN_DOUBLE if working == TensorProto.DOUBLE else _IN_FLOAT
    one = context.scalar(1, "number", working)
    size = op.Abs(data)
    below = clipped(context, size, 0, 1, working)
    beyond = clipped(context, size, 1, approximation.end, working)
    square = op.Mul(below, below)
    lower = op.Mul(below, approximation.up_to_one.of(context, square, working))
    rest = op.Exp(approximation.from_one.of(context, beyond, working))
    upper = op.Sub(one, rest)
    is_lower = cast(context, op.Less(size, one), working)
    is_upper = op.Sub(one, is_lower)
    parts = [op.Mul(part, mask) for part, mask in ((lower, is_lower), (upper, is_upper))]
    curve = op.Add(*parts)
    sign = op.Sign(data)
    replace_and_cast_back(context, "Mul", [curve, sign], elem_type, working)
