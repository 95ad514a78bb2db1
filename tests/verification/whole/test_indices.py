"""Indices that differ between nearly equal values agree; altered ones do not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto

from onnxreduce_cli.verification.compare.values import Tolerance
from onnxreduce_cli.verification.whole.equivalence import verify
from onnxreduce_cli.verification.whole.results import VerifyReport
from tests.support import model

HEAD = '<ir_version: 8, opset_import: ["": 18]>'

#: Adding 3 and taking it off again rounds what is near 1, so that neighbours change places.
ROUNDED = "a = Add(x, three) \n t = Sub(a, three)"
PLAIN = "t = Identity(x)"
GRAPH = (
    "g (float[N,M] x) => ({outputs}) <float three = {3}, int64[1] k = {2}, int64[1] one = {1}, "
    "float over = {0.5}, {weights}> { {data} \n {rest} }"
)


#: An initializer whose neighbours are far apart.
SPREAD = "float[1,8] far = {5, 90, 31, 64, 2, 77, 48, 12}"


def source(
    data: str, rest: str, outputs: str = "int64[A,B] y", weights: str = "int64 unread = {0}"
) -> ModelProto:
    text = GRAPH.replace("{weights}", weights)
    text = text.replace("{outputs}", outputs).replace("{data}", data).replace("{rest}", rest)
    return model(HEAD + text)


def near_equal(rows: int = 4, columns: int = 8) -> np.ndarray[Any, Any]:
    """Numbers of which neighbours along the last axis are about one ULP apart."""
    steps = np.random.default_rng(0).permuted(
        np.tile(np.arange(columns, dtype=np.float32), (rows, 1)), axis=1
    )
    return 1 + steps * np.float32(2.0**-23)


def compared(first: ModelProto, second: ModelProto, **how: Any) -> VerifyReport:
    return verify(first, second, inputs=[{"x": near_equal()}, {"x": spread()}], **how)


def spread() -> np.ndarray[Any, Any]:
    return np.random.default_rng(1).permuted(np.arange(32, dtype=np.float32)).reshape(4, 8)


PICKING = {
    "ArgMax": "y = ArgMax<axis = 1>(t)",
    "ArgMin": "y = ArgMin<axis = 1>(t)",
    "TopK": "v, y = TopK<axis = 1>(t, k)",
    "Unique": "v, i, j = Unique(t) \n y = Unsqueeze(j, one)",
    "Unique, fewer of them": "v, i, j, c = Unique(t) \n y = Unsqueeze(c, one)",
    "Hardmax": "h = Hardmax<axis = 1>(t) \n y = Cast<to = 7>(h)",
    "ArgMax, then Cast and Squeeze": "i = ArgMax<axis = 1>(t) \n j = Cast<to = 6>(i) \n "
    "u = Squeeze(j, one) \n w = Unsqueeze(u, one) \n y = Cast<to = 7>(w)",
}


@pytest.mark.parametrize("how", PICKING)
def test_between_nearly_equal_values_either_is_right(how: str) -> None:
    first, second = (source(data, PICKING[how]) for data in (ROUNDED, PLAIN))
    report = compared(first, second)
    wrong = [found for found in report.comparisons if not found.errors.agree]
    assert wrong, "the models must pick others"
    assert {found.explained for found in wrong} == {"near-equal values"}
    assert report.exit_code == 0
    assert any("another order" in remark for remark in report.remarks)
    assert report.divergence is None
    # To the bit they are not the same.
    assert compared(first, second, tolerance=Tolerance(exact=True)).exit_code == 1


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("y = ArgMax<axis = 1>(t)", "i = ArgMax<axis = 1>(t) \n y = Add(i, one)"),
        ("y = ArgMax<axis = 1>(t)", "y = ArgMin<axis = 1>(t)"),
        ("v, y = TopK<axis = 1>(t, k)", "v, y = TopK<axis = 1, largest = 0>(t, k)"),
        ("v, y = TopK<axis = 1>(t, k)", "v, y = TopK<axis = 0>(t, k)"),
        (
            "v, i, j = Unique(t) \n y = Unsqueeze(j, one)",
            "v, i, j = Unique<sorted = 0>(t) \n y = Unsqueeze(j, one)",
        ),
    ],
)
def test_other_choices_are_wrong_even_between_nearly_equal_values(right: str, wrong: str) -> None:
    second = source(PLAIN, wrong)
    for data in (ROUNDED, PLAIN):
        report = verify(source(data, right), second, inputs={"x": near_equal(8)})
        assert report.exit_code == 1, data
        assert report.divergence is not None


def test_another_axis_is_wrong() -> None:
    outputs = "int64[A,B] y"
    first = source(
        ROUNDED, "i = ArgMax<axis = 1, keepdims = 0>(t) \n y = Unsqueeze(i, one)", outputs
    )
    second = source(
        PLAIN, "i = ArgMax<axis = 0, keepdims = 0>(t) \n y = Unsqueeze(i, one)", outputs
    )
    assert verify(first, second, inputs={"x": near_equal(8, 8)}).exit_code == 1


def test_the_last_of_equals_is_wrong_where_the_first_is_due() -> None:
    rest = "y = ArgMax<axis = 1, select_last_index = {}>(t)"
    x = np.repeat(near_equal(), 2, axis=1)
    for data in (ROUNDED, PLAIN):
        models = [source(data, rest.format(0)), source(PLAIN, rest.format(1))]
        assert verify(*models, inputs={"x": x}).exit_code == 1


def test_values_altered_by_more_than_rounding_are_wrong() -> None:
    rest = "y = ArgMax<axis = 1>(t)"
    weights = "float[1,8] w = {1, 1.01, 1, 1, 0.99, 1, 1, 1}"
    other = source("t = Mul(x, w)", rest, weights=weights)
    assert compared(source(PLAIN, rest), other).exit_code == 1


def test_what_follows_from_the_choice_is_judged_by_the_same_choice() -> None:
    rest = (
        "v, i = TopK<axis = 1>(t, k) \n p = GatherElements<axis = 1>(far, i) \n y = Mul(p, three)"
    )
    models = [source(data, rest, "float[A,B] y", SPREAD) for data in (ROUNDED, PLAIN)]
    report = verify(*models, inputs={"x": near_equal(1)})
    assert any(found.errors.max_abs > 1 for found in report.comparisons)
    assert report.exit_code == 0
    # The same choice, but something else made of it.
    models[1].graph.node[-1].op_type = "Add"
    assert verify(*models, inputs={"x": near_equal(1)}).exit_code == 1


def test_a_counterpart_goes_by_its_place_where_names_differ() -> None:
    first = source(ROUNDED, "i = ArgMax<axis = 1>(t) \n y = Add(i, one)")
    second = source("u = Identity(x)", "j = ArgMax<axis = 1>(u) \n y = Add(j, one)")
    assert compared(first, second).exit_code == 0


def boxes_model(data: str, threshold: str = "0.5") -> ModelProto:
    text = (
        "g (float[1,N,4] boxes, float[1,1,N] x) => (int64[K,3] y) "
        "<float three = {3}, int64 most = {4}, float over = {" + threshold + "}> "
        "{ " + data + " \n y = NonMaxSuppression(boxes, t, most, over) }"
    )
    return model(HEAD + text)


def test_boxes_with_nearly_equal_scores() -> None:
    corners = np.array([[[i, 0, i + 1.5, 1] for i in range(8)]], np.float32)
    feeds = {"boxes": corners, "x": near_equal(1, 8).reshape(1, 1, 8)}
    report = verify(boxes_model(ROUNDED), boxes_model(PLAIN), inputs=feeds)
    assert any(not found.errors.agree for found in report.comparisons)
    assert report.exit_code == 0
    assert verify(boxes_model(ROUNDED), boxes_model(PLAIN, "0.1"), inputs=feeds).exit_code == 1


def test_what_rounding_moves_far_may_be_picked_otherwise() -> None:
    rest = "u = Mul(t, large) \n y = ArgMax<axis = 1>(u)"
    rounded = "a = Add(x, large) \n b = Add(a, off) \n t = Sub(b, large)"
    otherwise = "a = Add(x, off) \n b = Add(a, large) \n t = Sub(b, large)"
    weights = "float large = {20000}, float off = {0.3333}"
    models = [source(data, rest, weights=weights) for data in (rounded, otherwise)]
    x = np.random.default_rng(0).normal(size=(16, 8)).astype(np.float32) * np.float32(5e-3)
    report = verify(*models, inputs={"x": x})
    assert any(not found.errors.agree for found in report.comparisons)
    assert report.exit_code == 0
    models[1].graph.node[-1].op_type = "ArgMin"
    assert verify(*models, inputs={"x": x}).exit_code == 1


def test_executors_that_pick_otherwise_are_not_blamed() -> None:
    """Both compute the logarithm to the last bit or two, each in its own way."""
    found = source("a = Exp(x) \n b = Log(a) \n t = Exp(b)", "y = ArgMax<axis = 1>(t)")
    x = np.repeat(near_equal(64, 8), 8, axis=1) + np.float32(0.3)
    report = verify(found, inputs={"x": x})
    assert report.comparisons[0].agree
    assert report.exit_code == 0
