"""The distinct sites of a conversion, and the pairs that they can be checked by."""

from __future__ import annotations

from typing import Any

import pytest
from onnx import numpy_helper, parser

from onnxreduce_cli.engine.conversion import Conversion
from onnxreduce_cli.engine.pairs.distinct import DistinctSites
from onnxreduce_cli.engine.pairs.making import PairMaker
from onnxreduce_cli.engine.pairs.pair import DistinctSite, Pair, UncheckableError
from onnxreduce_cli.engine.pairs.smaller import smaller_pair
from onnxreduce_cli.engine.sites import Site
from onnxreduce_cli.verification.inputs.profiles import constant_drawer
from tests.support import model


def distinct(text: str, opset: int, target: int) -> DistinctSites:
    source = model(f'<ir_version: 8, opset_import: ["": {opset}]> {text}')
    return DistinctSites(Conversion(source, target), constant_drawer())


def smallest(pair: Pair, text: str, opset: int, target: int) -> Pair:
    """The pair of the only site of a model, given that of its true tensors."""
    conversion = Conversion(model(f'<ir_version: 8, opset_import: ["": {opset}]> {text}'), target)
    (site,) = conversion.sites
    return smaller_pair(pair, site, conversion, constant_drawer())


def dims(site: DistinctSite) -> list[int]:
    (pair,) = site.pairs
    (value,) = pair.reference.graph.input
    return [dim.dim_value for dim in value.type.tensor_type.shape.dim]


def test_equivalent_sites_are_one() -> None:
    one, other = distinct(
        "g (float[2,3] x) => (float[2,1] y, float[2,1] z, float[1,3] w) {"
        " y = ReduceMax<axes=[1]>(x) z = ReduceMax<axes=[1]>(x) w = ReduceMax<axes=[0]>(x) }",
        13,
        18,
    ).with_small_tensors()
    assert (one.op_type, one.scope, one.result, one.sites) == ("ReduceMax", "", ("ReduceMax",), 2)
    assert other.sites == 1
    (pair,) = one.pairs
    assert pair.moved


def pairs_made(
    monkeypatch: pytest.MonkeyPatch, functions: str, calls: str
) -> tuple[int, list[int]]:
    """How many pairs are made of the functions `own.first` and `own.second`, and their sites."""
    made, pair = [], PairMaker.pair

    def noted(maker: PairMaker, site: Site, *rest: Any, **more: Any) -> Pair:
        made.append(site)
        return pair(maker, site, *rest, **more)

    monkeypatch.setattr(PairMaker, "pair", noted)
    source = model(
        f"""<ir_version: 8, opset_import: ["": 13, "own": 1]>
        g (float[2,3] x) => (float[2,n] y, float[2,n] z) {{ {calls} }} {functions}"""
    )
    found = DistinctSites(Conversion(source, 18), constant_drawer()).with_small_tensors()
    return len(made), [one.sites for one in found]


@pytest.mark.parametrize(("given", "attributes"), [("", ""), ("<axes>", "<axes=[1]>")])
def test_equal_nodes_of_functions_have_one_pair_unless_calls_decide(
    given: str, attributes: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = "<axes: ints = @axes>" if given else "<axes=[1]>"
    functions = "".join(
        f"""<domain: "own", opset_import: ["": 13]>
        {name} {given} (x) => (y) {{ y = ReduceMax{own}(x) }}"""
        for name in ("first", "second")
    )
    calls = f"y = own.first{attributes}(x) z = own.second{attributes}(x)"
    assert pairs_made(monkeypatch, functions, calls) == (2 if given else 1, [2])


def test_equal_nodes_that_read_what_calls_set_have_a_pair_for_each_function(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Though no step asks for it."""
    functions = "".join(
        f"""<domain: "own", opset_import: ["": 13]> {name} <row> (x) => (y) {{
            w = Constant<value_floats: floats = @row>() s = ReduceMax<axes=[0]>(w) y = Mul(x, s)
        }}"""
        for name in ("first", "second")
    )
    calls = """a = own.first<row=[1.0, 2.0]>(x) y = own.first<row=[3.0, 4.0]>(a)
        b = own.second<row=[5.0, 6.0]>(x) z = own.second<row=[7.0, 8.0]>(b)"""
    assert pairs_made(monkeypatch, functions, calls) == (4, [1, 1])


def test_nodes_of_functions_that_read_other_large_constants_have_their_own_pairs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Their elements are not compared, and values of one name are others in each function."""
    functions = "".join(
        f"""<domain: "own", opset_import: ["": 13]> {name} (x) => (y) {{
            w = Constant<value = float[2000] {{{", ".join([number] * 2000)}}}>()
            s = ReduceMax<axes=[0]>(w) y = Mul(x, s)
        }}"""
        for name, number in (("first", "1"), ("second", "2"))
    )
    calls = "y = own.first(x) z = own.second(x)"
    made, _ = pairs_made(monkeypatch, functions, calls)
    assert made == 2


def test_pairs_of_true_sizes_and_of_the_smallest_follow() -> None:
    text = "g (float[900,3] x) => (float[900,1] y) { y = ReduceMax<axes=[1]>(x) }"
    found = distinct(text, 13, 18)
    (site,) = found.with_small_tensors()
    assert dims(site) == [5, 3]
    (full,) = found.with_true_tensors(site).pairs
    assert full.full
    assert not full.constants
    assert dims(site._replace(pairs=(full,))) == [900, 3]
    least = smallest(full, text, 13, 18)
    assert dims(site._replace(pairs=(least,))) == [5, 3]
    assert [node.op_type for node in least.candidate.graph.node] == ["ReduceMax"]


def test_a_pair_of_true_sizes_has_none_but_smaller_ones_beside_it() -> None:
    text = "g (float[2,3] x) => (float[2,1] y) { y = ReduceMax<axes=[1]>(x) }"
    (site,) = distinct(text, 13, 18).with_small_tensors()
    (pair,) = site.pairs
    assert pair.full
    with pytest.raises(UncheckableError, match="the node itself says how large they are"):
        smallest(pair, text, 13, 18)


def test_true_tensors_that_are_too_large_are_made_smaller() -> None:
    text = "g (float[90000,300] x) => (float[90000,1] y) { y = ReduceMax<axes=[1]>(x) }"
    found = distinct(text, 13, 18)
    (site,) = found.with_small_tensors()
    assert dims(site) == [5, 6]
    site = found.with_true_tensors(site)
    assert dims(site) == [6, 5]
    (pair,) = site.pairs
    assert pair.full


def test_what_is_too_large_and_cannot_be_smaller_has_no_pair() -> None:
    text = """g (float[1,1,H,W] x) => (float[A,B,C,D] y) {
        y = AveragePool<kernel_shape=[4096,4096], dilations=[2,2],
            pads=[4096,4096,4096,4096]>(x) }"""
    (site,) = distinct(text, 19, 18).with_small_tensors()
    assert site.pairs == ()
    assert site.reason.startswith("its tensors are too large to try; ")


def test_a_site_without_a_pair_says_why() -> None:
    source = parser.parse_model(
        '<ir_version: 8, opset_import: ["": 13, "f": 1]>'
        "g (float[N,M] x) => (float[N,M] y) { y = Relu(x) }"
        '<domain: "f", opset_import: ["": 13]> top (a) => (b) { b = ReduceMax<axes=[1]>(a) }'
    )
    (site,) = DistinctSites(Conversion(source, 18), constant_drawer()).with_small_tensors()
    assert site.pairs == ()
    assert site.reason == "the type of 'a' is not known"


CALLED_TWICE = """<ir_version: 8, opset_import: ["": 13, "f": 1]>
    g (float[N,M] x) => (float[N,1] y, float[N] z, float[1,M] w) {
        y = f.F<kept = 1>(x) z = f.F<kept = 0>(x) w = f.F<kept = 1, axes = [0]>(x)
    }
    <domain: "f", opset_import: ["": 13]> F <kept, axes: ints = [1]> (a) => (b) { BODY }"""


def called_twice(body: str) -> list[DistinctSite]:
    conversion = Conversion(model(CALLED_TWICE.replace("BODY", body)), 18)
    return DistinctSites(conversion, constant_drawer()).with_small_tensors()


def test_a_site_has_a_pair_for_each_combination_of_attributes_that_calls_set() -> None:
    (site,) = called_twice("b = ReduceMax<keepdims: int = @kept, axes: ints = @axes>(a)")
    assert site.sites == 1
    found = []
    for pair in site.pairs:
        (node,), (axes,) = pair.candidate.graph.node, pair.candidate.graph.initializer
        assert not any(attribute.ref_attr_name for attribute in node.attribute)
        found.append((node.attribute[0].i, *numpy_helper.to_array(axes)))
    assert found == [(1, 1), (0, 1), (1, 0)]


def test_a_site_has_one_pair_for_attributes_that_it_does_not_refer_to() -> None:
    (site,) = called_twice("b = ReduceMax<keepdims: int = @kept, axes = [1]>(a)")
    assert len(site.pairs) == 2


def test_a_constant_that_calls_set_is_one_in_each_pair() -> None:
    (site,) = DistinctSites(
        Conversion(
            model(
                CALLED_TWICE.replace('"": 13', '"": 18').replace(
                    "BODY",
                    "i = Constant<value_ints: ints = @axes>()"
                    " b = ReduceMax<keepdims: int = @kept>(a, i)",
                )
            ),
            13,
        ),
        constant_drawer(),
    ).with_small_tensors()
    axes = [pair.candidate.graph.node[0].attribute for pair in site.pairs]
    assert [sorted(item.name for item in given) for given in axes] == [["axes", "keepdims"]] * 3
    before = [pair.reference.graph.initializer[0] for pair in site.pairs]
    assert [numpy_helper.to_array(tensor).tolist() for tensor in before] == [[1], [1], [0]]
