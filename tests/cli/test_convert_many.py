"""`onnxreduce convert` of several models."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress

import numpy as np
import onnx
import onnx.version_converter
import pytest
from onnx import numpy_helper

from onnxreduce_cli.batch import run
from onnxreduce_cli.batch.record import NAME
from onnxreduce_cli.errors import CheckError, UsageError
from onnxreduce_cli.worker import process
from tests.support import model

GOOD = """<ir_version: 8, opset_import: ["" : 18]>
g (float[2,3,4] x) => (float[2,1,4] y) <int64[1] axes = {1}> {
    [mean] y = ReduceMean(x, axes)
}"""

#: Nothing before opset 13 has a place for bfloat16 reductions.
BLOCKED = """<ir_version: 8, opset_import: ["" : 18]>
g (bfloat16[2,3] x) => (bfloat16[1,1] y) { [first] y = ReduceMax(x) }"""

#: Put in front of a process's own imports, to plant what a model does to it.
PLANT = """
import sys, time
if "--multiprocessing-fork" in sys.argv or "-c" in sys.argv:
    import ctypes
    import onnxreduce_cli.api.file_conversion as convert_file
    true = convert_file.check_conversion
    def check(conversion, **_):
        if conversion.model.graph.name == "crash":
            ctypes.string_at(0)
        if conversion.model.graph.name == "slow":
            time.sleep(60)
        if conversion.model.graph.name == "large":
            kept = b"1" * (1 << 30)
            time.sleep(60)
        return true(conversion, **_)
    convert_file.check_conversion = check
"""


@pytest.fixture
def models(tmp_path, monkeypatch):
    """A folder of models, which is the current one's `models`."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "models"
    folder.mkdir()
    for name in ("a", "b"):
        onnx.save(model(GOOD), folder / f"{name}.onnx")
    return folder


@pytest.fixture
def at_once(monkeypatch):
    """Spare tests that are not about processes the starting of them."""

    def call(function, items, _):
        return ((item, function(item)) for item in items)

    monkeypatch.setattr(run, "call_apart", call)


def planted(name):
    found = model(GOOD)
    found.graph.name = name
    return found


@pytest.fixture
def plant(tmp_path, monkeypatch):
    (tmp_path / "plant").mkdir()
    (tmp_path / "plant" / "sitecustomize.py").write_text(PLANT)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "plant"))


def opset_of(path):
    return onnx.load(path).opset_import[0].version


def start(*arguments):
    """The command in a process of its own, and of its own group."""
    # What a shell runs in the background ignores interruptions, and what that starts does too.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return _started(arguments)
    finally:
        signal.signal(signal.SIGINT, before)


def _started(arguments):
    return subprocess.Popen(
        [sys.executable, "-m", "onnxreduce_cli", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def wait_for(path):
    limit = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < limit, f"{path} did not come to be"
        time.sleep(0.01)


def wait_for_the_end_of(group):
    """Wait until no process is left of a group."""
    limit = time.monotonic() + 60
    with suppress(ProcessLookupError):
        while time.monotonic() < limit:
            os.killpg(group, 0)
            time.sleep(0.01)
        raise AssertionError("some process goes on")


def test_the_process_that_checks_one_model_does_not_stay(onnxreduce, models, monkeypatch):
    one = process.current_worker()
    alive = []
    convert = run.convert_many

    def convert_many(*given, **named):
        alive.append(one.alive)
        return convert(*given, **named)

    monkeypatch.setattr(run, "convert_many", convert_many)
    assert onnxreduce("convert", "models/*.onnx", "--opset", 13, "--out-dir", "out").code == 0
    assert alive == [False]


def test_one_failure_does_not_stop_the_others(onnxreduce, models):
    onnx.save(model(BLOCKED), models / "aa.onnx")
    (models / "ab.onnx").write_bytes(b"no model")
    names = ["a.onnx", "aa.onnx", "ab.onnx", "b.onnx", "missing.onnx"]
    sources = [models / name for name in names]
    result = onnxreduce("convert", *sources, "--opset", 11, "--out-dir", "out", "--jobs", 2)
    assert result.code == 1
    head, *rows, total = result.out.splitlines()
    assert head.split() == ["MODEL", "RESULT"]
    failed_first = ["aa.onnx", "ab.onnx", "missing.onnx", "a.onnx", "b.onnx"]
    assert [row.split()[0] for row in rows] == [str(models / name) for name in failed_first]
    assert (
        "cannot be converted  ReduceMax node first (opset 18): it has a tensor(bfloat16)" in rows[0]
    )
    assert "unreadable" in rows[1]
    assert "unreadable" in rows[2]
    assert "converted  " in rows[3]
    assert "Converted to opset 11: 1 node changed, all checked, bit-exact (out/a.onnx)" in rows[3]
    assert total == "5 models: 1 cannot be converted, 2 unreadable, 2 converted"
    assert "ReduceMax node first (opset 18): " in result.err
    assert f"{sources[2]} is no ONNX model" in result.err
    assert f"{sources[4]} cannot be read: No such file" in result.err
    assert sorted(os.listdir("out")) == [NAME, "a.onnx", "b.onnx"]
    assert opset_of("out/a.onnx") == opset_of("out/b.onnx") == 11


def test_exit_codes_and_quiet(onnxreduce, models, at_once):
    call = ("convert", "--opset", 13, "--out-dir", "out", "--no-check")
    result = onnxreduce(*call, "models/*.onnx", "-q")
    assert (result.code, result.out, result.err) == (0, "", "")
    result = onnxreduce(*call, "models/*.onnx", "none*.onnx", "--force", "-q")
    assert (result.code, result.out) == (2, "")
    assert result.err == "none*.onnx cannot be read: No such file or directory\n"


def test_each_node_in_the_way_has_a_line_with_its_model(onnxreduce, models, at_once):
    blocked = model(BLOCKED)
    for index in range(12):
        blocked.graph.node.add().CopyFrom(blocked.graph.node[0])
        blocked.graph.node[-1].name = blocked.graph.node[-1].output[0] = f"a/long/name/{index}"
    onnx.save(blocked, models / "c.onnx")
    nodes = ["first", *(f"a/long/name/{index}" for index in range(12))]
    for call in (("models/c.onnx",), ("models/*.onnx", "--out-dir", "out")):
        for more in ((), ("--dry-run",)):
            result = onnxreduce("convert", *call, *more, "--opset", 11, "-q", "--force")
            assert (result.code, result.out) == (1, "")
            lines = result.err.splitlines()
            beginnings = [f"models/c.onnx: ReduceMax node {name} (opset 18): " for name in nodes]
            assert all(map(str.startswith, lines, beginnings))
            assert len(lines) == len(nodes)


def test_a_model_that_stays_as_it_is_does_not_count_as_converted(onnxreduce, models, at_once):
    onnx.save(onnx.version_converter.convert_version(model(GOOD), 13), models / "b.onnx")
    call = ("convert", "models/*.onnx", "--opset", 13, "--ir-version", "keep", "--out-dir", "out")
    result = onnxreduce(*call, "--json=out.json")
    assert "2 models: 1 converted, 1 unchanged" in result.out
    with open("out.json") as file:
        states = [item["state"] for item in json.load(file)["models"]]
    assert states == ["converted", "unchanged"]
    with open("out/b.onnx", "rb") as written, open("models/b.onnx", "rb") as read:
        assert written.read() == read.read()
    result = onnxreduce("convert", "models/b.onnx", *call[2:6], "--json")
    assert json.loads(result.out)["models"][0]["state"] == "unchanged"


def test_the_reason_of_a_model_that_fails_its_check(onnxreduce, models, at_once, monkeypatch):
    def convert_file(source, *_, **__):
        raise CheckError(["what would replace these nodes differs:", "Relu node r: it is 1"], "f")

    monkeypatch.setattr(run, "convert_file", convert_file)
    result = onnxreduce("convert", "models/*.onnx", "--opset", 13)
    assert result.out.splitlines()[1].split("  ")[1:] == [
        "failed its check",
        "Relu node r: it is 1",
    ]


def test_a_dry_run_over_many(onnxreduce, models, at_once):
    result = onnxreduce("convert", "models/*.onnx", "--opset", 11, "--dry-run")
    assert result.code == 0
    assert "2 models: 2 can be converted" in result.out
    call = ("convert", "models/*.onnx", "--opset", 11, "--dry-run", "--verify", "--trials", 1)
    assert onnxreduce(*call).out.count(", all checked, bit-exact, verified on 1 input\n") == 2
    onnx.save(model(BLOCKED), models / "c.onnx")
    result = onnxreduce("convert", "models/*.onnx", "--opset", 11, "--dry-run", "--out-dir", "out")
    assert result.code == 1
    assert "1 cannot be converted, 2 can be converted" in result.out
    assert "ReduceMax node first" in result.err
    assert os.listdir() == ["models"]


def test_outputs_beside_the_models(onnxreduce, models, at_once):
    assert onnxreduce("convert", "models/*.onnx", "--opset", 13, "--no-check").code == 0
    assert opset_of(models / "a.opset13.onnx") == opset_of(models / "b.opset13.onnx") == 13
    assert onnxreduce("convert", "models/?.onnx", "--opset", 13, "--in-place", "-q").code == 0
    assert opset_of(models / "a.onnx") == opset_of(models / "b.onnx") == 13


def test_equal_names_stay_apart_with_their_data(onnxreduce, models, at_once):
    for number, folder in enumerate(("x", "y")):
        found = model(GOOD)
        weight = numpy_helper.from_array(np.full(4, number, np.float32), "w")
        found.graph.initializer.append(weight)
        found.graph.node[0].output[0] = "m"
        found.graph.node.append(onnx.helper.make_node("Add", ["m", "w"], ["y"]))
        (models / folder).mkdir()
        onnx.save(
            found,
            models / folder / "m.onnx",
            save_as_external_data=True,
            location="weights.bin",
            size_threshold=0,
            convert_attribute=False,
        )
    call = ("convert", "models/**/m.onnx", "--opset", 13, "--out-dir", "out", "--jobs", 2)
    assert onnxreduce(*call, "--resume").code == 0
    for number, folder in enumerate(("x", "y")):
        found = onnx.load(f"out/{folder}/m.onnx")
        assert found.opset_import[0].version == 13
        assert np.array_equal(
            numpy_helper.to_array(found.graph.initializer[-1]), np.full(4, number, np.float32)
        )
    result = onnxreduce(*call, "--resume")
    assert "2 models: 2 skipped" in result.out
    # An output that lacks its data is not done.
    os.unlink("out/y/weights.bin")
    result = onnxreduce(*call, "--resume")
    assert "2 models: 1 skipped, 1 converted" in result.out
    assert os.path.exists("out/y/weights.bin")


def test_resume_notices_data_that_went_into_the_output(onnxreduce, models, at_once):
    found = model(GOOD)
    # What is to be external must be raw.
    found.graph.initializer[0].CopyFrom(numpy_helper.from_array(np.array([1]), "axes"))
    onnx.save(found, models / "a.onnx", save_as_external_data=True, location="w", size_threshold=0)
    call = ("convert", "models/a.onnx", "--opset", 18, "--inline", "--out-dir", "out", "--resume")
    assert "1 model: 1 converted" in onnxreduce(*call).out
    assert "1 model: 1 skipped" in onnxreduce(*call).out
    (models / "w").write_bytes(np.int64(2).tobytes())
    assert "1 model: 1 converted" in onnxreduce(*call).out
    assert numpy_helper.to_array(onnx.load("out/a.onnx").graph.initializer[0]) == 2


def test_data_that_goes_again_with_another_model_is_noticed(onnxreduce, models, monkeypatch):
    def call(function, items, _):
        yield from ((item, function(item)) for item in items)
        os.unlink("out/w")

    monkeypatch.setattr(run, "call_apart", call)
    found = model(GOOD)
    found.graph.initializer[0].CopyFrom(numpy_helper.from_array(np.array([1]), "axes"))
    onnx.save(found, models / "a.onnx", save_as_external_data=True, location="w", size_threshold=0)
    result = onnxreduce("convert", "models/*.onnx", "--opset", 18, "--out-dir", "out")
    assert result.code == 2
    assert "2 models: 1 incomplete, 1 unchanged" in result.out
    assert "a.onnx: its external data is gone again" in result.err


def test_resume_skips_what_is_done_and_that_alone(onnxreduce, models, at_once):
    call = ("convert", "models/*.onnx", "--no-check", "--out-dir", "out", "--resume", "--opset")
    assert onnxreduce(*call, 13).code == 0
    result = onnxreduce(*call, 13)
    assert "2 models: 2 skipped" in result.out
    # Without --resume they are in the way.
    assert onnxreduce(*call[:-2], "--opset", 13).code == 2

    before = os.stat("out/b.onnx")
    for spoil in (
        lambda: os.unlink("out/a.onnx"),
        lambda: os.truncate("out/a.onnx", 10),
        lambda: onnx.save(planted("new"), models / "a.onnx"),
    ):
        spoil()
        assert "1 converted, 1 skipped" in onnxreduce(*call, 13).out
        assert opset_of("out/a.onnx") == 13
    assert onnx.load("out/a.onnx").graph.name == "new"
    assert os.stat("out/b.onnx") == before

    # Other options make other outputs.
    assert "2 models: 2 converted" in onnxreduce(*call, 11).out
    assert opset_of("out/a.onnx") == 11


def test_runs_of_parts_share_a_folder(onnxreduce, models, at_once):
    for name in "cdefgh":
        shutil.copy(models / "a.onnx", models / f"{name}.onnx")
    options = ("--opset", 13, "--no-check", "--out-dir", "out", "--resume")
    counts = []
    for part in ("models/[a-c].onnx", "models/[d-h].onnx"):
        result = onnxreduce("convert", part, *options)
        assert result.code == 0
        counts.append(int(result.out.splitlines()[-1].split()[0]))
    assert counts == [3, 5]
    assert "8 models: 8 skipped" in onnxreduce("convert", "models/*.onnx", *options).out


def test_limits_hold_for_each_of_many(onnxreduce, models, at_once, monkeypatch):
    seen = []

    def convert_file(_source, _target, options, **_):
        seen.append((options.timeout, options.memory))
        raise UsageError("seen")

    monkeypatch.setattr(run, "convert_file", convert_file)
    onnxreduce("convert", "models/*.onnx", "--opset", 13, "--timeout", 7, "--memory", "1GB")
    assert seen == [(7, 10**9)] * 2


def test_a_cluster_without_dask(onnxreduce, models, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    call = ("convert", "models/*.onnx", "--opset", 13, "--out-dir", "out")
    result = onnxreduce(*call, "--cluster", "tcp://localhost:1")
    assert result.code == 2
    assert "pip install distributed" in result.err
    assert not os.path.exists("out")


def test_resume_does_not_overwrite_what_no_run_made(onnxreduce, models, at_once):
    os.mkdir("out")
    with open("out/a.onnx", "wb") as file:
        file.write(b"precious")
    call = ("convert", "models/*.onnx", "--no-check", "--out-dir", "out", "--opset", 13)
    for extra in ((), ("--resume",)):
        result = onnxreduce(*call, *extra)
        assert result.code == 2
        assert "out/a.onnx exists; to overwrite it say --force" in result.err
        with open("out/a.onnx", "rb") as file:
            assert file.read() == b"precious"
    # Nor what came to be where a run failed.
    (models / "b.onnx").rename(models / "c.onnx")
    onnx.save(model(BLOCKED), models / "b.onnx")
    os.unlink("out/b.onnx")
    assert onnxreduce(*call[:-1], 11, "--resume").code == 1
    shutil.copy(models / "c.onnx", models / "b.onnx")
    with open("out/b.onnx", "wb") as file:
        file.write(b"precious")
    assert onnxreduce(*call, "--resume").code == 2
    with open("out/b.onnx", "rb") as file:
        assert file.read() == b"precious"
    assert onnxreduce(*call, "--resume", "--force").code == 0


def test_a_crash_is_that_models_alone(onnxreduce, models, plant):
    onnx.save(planted("crash"), models / "aa.onnx")
    result = onnxreduce("convert", "models/*.onnx", "--opset", 13, "--out-dir", "out")
    assert result.code == 1
    assert "1 crashed, 2 converted" in result.out
    assert "aa.onnx: the process that converted it ended with" in result.err
    assert "--no-check" in result.err
    assert sorted(os.listdir("out")) == [NAME, "a.onnx", "b.onnx"]


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -9)]
)
def test_a_run_that_is_ended_can_be_resumed(onnxreduce, models, plant, at_once, number, code):
    onnx.save(planted("slow"), models / "c.onnx")
    begun = start("convert", "models/*.onnx", "--opset", 13, "--out-dir", "out")
    wait_for(models.parent / "out" / "b.onnx")
    os.killpg(begun.pid, number) if number != signal.SIGTERM else begun.terminate()
    _, err = begun.communicate(timeout=60)
    assert begun.returncode == code
    assert "Traceback" not in err
    assert sorted(os.listdir("out")) == [NAME, "a.onnx", "b.onnx"]
    wait_for_the_end_of(begun.pid)
    onnx.save(model(GOOD), models / "c.onnx")
    result = onnxreduce("convert", "models/*.onnx", "--opset", 13, "--out-dir", "out", "--resume")
    assert result.code == 0
    assert "skipped" in result.out
    assert opset_of("out/c.onnx") == 13


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("a.onnx", "b.onnx", "-o", "x.onnx"), "-o names one file"),
        (("a.onnx", "--out-dir", "out", "-o", "x.onnx"), "-o names one file"),
        (("a.onnx", "-"), "standard input is one model"),
        (("a.onnx", "--resume"), "--resume needs the folder"),
        (("a.onnx", "--out-dir", "out", "--in-place"), "--in-place and --out-dir exclude"),
        (("a.onnx", "b.onnx", "--jobs", "0"), "--jobs"),
        (("a.onnx", "--cluster", "tcp://x:1"), "--cluster needs a folder"),
        (
            ("a.onnx", "--cluster", "tcp://x:1", "--out-dir", "o", "--jobs", "2"),
            "--jobs and --cluster exclude",
        ),
        (("a.onnx", "b.onnx", "--opset", "99"), "there is no opset 99"),
    ],
)
def test_wrong_usage(onnxreduce, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    result = onnxreduce("convert", "--opset", 13, *arguments)
    assert result.code == 2
    assert message in result.err
    assert os.listdir() == []


def test_a_file_where_the_folder_should_be(onnxreduce, models):
    models.parent.joinpath("out").touch()
    result = onnxreduce("convert", "models/*.onnx", "--opset", 13, "--out-dir", "out")
    assert result.code == 2
    assert "out: it is a file, not a folder; name another" in result.err


def test_a_model_that_takes_too_much_memory_for_its_size(onnxreduce, models, plant, monkeypatch):
    onnx.save(planted("large"), models / "a.onnx")
    monkeypatch.setattr(run, "memory_needed", lambda task: 100_000_000)
    result = onnxreduce("convert", "models/*.onnx", "--opset", 13, "--out-dir", "out")
    assert result.code == 1
    assert "2 models: 1 out of memory, 1 converted" in result.out
    assert "models/a.onnx: it takes more than 800 MB of memory" in result.err
    assert sorted(os.listdir("out")) == [NAME, "b.onnx"]
