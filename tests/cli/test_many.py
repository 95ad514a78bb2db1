"""Where many models are converted."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from onnxreduce_cli.batch import cluster as cluster_module
from onnxreduce_cli.batch.processes import Processes
from onnxreduce_cli.cli.convert import make_pool
from onnxreduce_cli.engine.options import Options
from onnxreduce_cli.errors import UsageError


class Cluster:
    """A cluster that answers, or whose workers lack the folders."""

    made: list[Cluster]
    problem: str | None = None
    dashboard = "http://host:8787/\x1b"

    def __init__(self, address: str, _: object) -> None:
        self.address, self.asked, self.ended = address, (), False
        Cluster.made.append(self)

    def check(self, sources: Sequence[str], out_dir: str | None) -> None:
        if self.problem is not None:
            raise UsageError(self.problem)
        self.asked = (*sources, out_dir)

    def shutdown(self) -> None:
        self.ended = True


@pytest.fixture(autouse=True)
def clusters(monkeypatch: pytest.MonkeyPatch) -> list[Cluster]:
    monkeypatch.setattr(cluster_module, "Cluster", Cluster)
    monkeypatch.setattr(Cluster, "made", [], raising=False)
    return Cluster.made


def test_models_are_converted_here_unless_said_otherwise(clusters: list[Cluster]) -> None:
    with make_pool(None, None, ["a.onnx"], "out", Options(opset=13), quiet=False) as found:
        assert isinstance(found, Processes)
    assert clusters == []


@pytest.mark.parametrize("dry_run", [False, True])
def test_a_cluster_is_looked_at_first(
    dry_run: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The folder is there by then, for its workers to see, unless nothing is written."""
    out_dir = tmp_path / "out"
    options = Options(opset=13, dry_run=dry_run)
    found = make_pool(None, "tcp://host:8786", ["a.onnx"], str(out_dir), options, quiet=False)
    assert isinstance(found, Cluster)
    assert (found.address, found.asked) == ("tcp://host:8786", ("a.onnx", str(out_dir)))
    assert not found.ended
    assert out_dir.is_dir() != dry_run
    out, err = capsys.readouterr()
    assert (out, err) == ("", "dashboard: http://host:8787/\\x1b\n")
    make_pool(None, "tcp://host:8786", ["a.onnx"], str(out_dir), options, quiet=True)
    assert capsys.readouterr() == ("", "")


def test_a_cluster_that_cannot_do_it_is_left(
    clusters: list[Cluster], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(Cluster, "problem", "workers do not see it")
    with pytest.raises(UsageError, match="workers do not see it"):
        make_pool(None, "tcp://h:1", ["a.onnx"], str(tmp_path), Options(opset=13), quiet=False)
    (found,) = clusters
    assert found.ended
