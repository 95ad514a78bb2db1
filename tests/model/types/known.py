"""Facts of a model, for tests."""

from __future__ import annotations

from onnx import ModelProto

from onnxreduce_cli.model.graph.scope import Scope, scopes
from onnxreduce_cli.model.types.facts import Facts


def facts_of(found: ModelProto) -> tuple[Facts, list[Scope]]:
    all_scopes = scopes(found)
    return Facts(found, all_scopes), all_scopes
