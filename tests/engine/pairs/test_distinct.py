"""The distinct sites of a conversion, and the pairs that they can be checked by."""

from __future__ import annotations

import pytest
from onnx import parser

from onnxreduce_cli.engine.conversion import Conversion
from onnxreduce_cli.engine.pairs.distinct import distinct_sites
from onnxreduce_cli.engine.pairs.pair import DistinctSite, UncheckableError
from onnxreduce_cli.verification.inputs.profiles import constant_drawer
from tests.support import model


def sites(text: str, opset: int, target: int) -> list[DistinctSite]:
    source = model(f'<ir_version: 8, opset_import: ["": {opset}]> {text}')
    return list(distinct_sites(Conversion(source, target), constant_drawer()))


def dims(site: DistinctSite) -> list[int]:
    assert site.pair is not None
    (value,) = site.pair.reference.graph.input
    return [dim.dim_value for dim in value.type.tensor_type.shape.dim]


def test_equivalent_sites_are_one() -> None:
    one, other = sites(
        "g (float[2,3] x) => (float[2,1] y, float[2,1] z, float[1,3] w) {"
        " y = ReduceMax<axes=[1]>(x) z = ReduceMax<axes=[1]>(x) w = ReduceMax<axes=[0]>(x) }",
        13,
        18,
    )
    assert (one.op_type, one.scope, one.result, one.sites) == ("ReduceMax", "", ("ReduceMax",), 2)
    assert other.sites == 1
    assert one.pair is not None
    assert one.pair.moved


def test_pairs_of_true_sizes_and_of_the_smallest_follow() -> None:
    (site,) = sites("g (float[900,3] x) => (float[900,1] y) { y = ReduceMax<axes=[1]>(x) }", 13, 18)
    assert dims(site) == [5, 3]
    full, least = site.others
    assert full.full
    assert not full.constants
    assert dims(site._replace(pair=full)) == [900, 3]
    assert dims(site._replace(pair=least)) == [5, 3]
    assert [node.op_type for node in least.candidate.graph.node] == ["ReduceMax"]


def test_a_pair_of_true_sizes_has_none_but_smaller_ones_beside_it() -> None:
    (site,) = sites("g (float[2,3] x) => (float[2,1] y) { y = ReduceMax<axes=[1]>(x) }", 13, 18)
    assert site.pair is not None
    assert site.pair.full
    with pytest.raises(UncheckableError, match="the node itself says how large they are"):
        next(site.others)


def test_a_site_without_a_pair_says_why() -> None:
    source = parser.parse_model(
        '<ir_version: 8, opset_import: ["": 13, "f": 1]>'
        "g (float[N,M] x) => (float[N,M] y) { y = Relu(x) }"
        '<domain: "f", opset_import: ["": 13]> top (a) => (b) { b = ReduceMax<axes=[1]>(a) }'
    )
    (site,) = distinct_sites(Conversion(source, 18), constant_drawer())
    assert site.pair is None
    assert site.reason == "the type of 'a' is not known"
    assert list(site.others) == []
