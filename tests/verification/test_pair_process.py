"""Checking pairs in a copy of a process."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only there processes are copied")

#: Checks what a copy was given, and prints whether it answers as this process does, and what was
#: imported here for that.
_PROGRAM = """
import os, signal, sys
from onnxreduce_cli.verification.pair_process import PairProcess, check_here

elsewhere = PairProcess()
from onnx.parser import parse_model
from onnxreduce_cli.engine.pairs.pair import Pair

def site(kind, opset, text):
    return parse_model(
        f'<ir_version: 8, opset_import: ["": {opset}]> site ({kind}[N,M] i0) => (o0) {{ {text} }}'
    )

def pair(kind, before, after, opsets=(13, 18), **given):
    models = site(kind, opsets[0], before), site(kind, opsets[1], after)
    return Pair(*models, **dict(moved=True, full=False, promised={}, sizes={}) | given)

norm = "o0 = ReduceL2<axes=[1]>(i0)"
moved = "c = Constant<value_ints=[1]>() o0 = ReduceL2(i0, c)"
pairs = [
    pair("float", norm, moved),
    pair("bfloat16", norm, moved),
    pair("double", norm, moved.replace("[1]", "[0]")),
    pair("float", "o0 = Abs(i0)", "a = Neg(i0) o0 = Max(i0, a)", moved=False),
    pair("int32", "o0 = Relu(i0)", "o0 = Relu(i0)"),
    pair("float", "o0 = Nowhere(i0)", "o0 = Relu(i0)"),
]

def told(found):
    inputs = {name: value.tolist() for name, value in found.inputs.items()}
    return found.failure, found.unchecked, found.refused, found.errors, found.remarks, inputs

"""

_ANSWERS = """
for item in pairs[:5]:
    elsewhere.begin(item, 0)
answered = [told(elsewhere.check(pair, 0)) for pair in pairs[:3]]
answered.append(told(elsewhere.check(pairs[5], 0)))
answered += [told(elsewhere.check(pair, 0)) for pair in pairs[3:5]]
print("onnxreduce_cli.executor" in sys.modules, "onnxruntime" in sys.modules)
here = [told(check_here(pairs[at], 0)) for at in (0, 1, 2, 5, 3, 4)]
print([first == second for first, second in zip(answered, here)])
print([bool(item[0]) for item in here], [bool(item[1]) for item in here])
"""

_ENDS = """
for item in pairs[:3]:
    elsewhere.begin(item, 0)
elsewhere.check(pairs[0], 0)
os.kill(elsewhere._copy.pid, signal.SIGKILL)
elsewhere._copy.wait()
if len(sys.argv) > 1:
    elsewhere.end()
print([told(elsewhere.check(pair, 0)) == told(check_here(pair, 0)) for pair in pairs])
"""


def _printed(program: str, *arguments: str) -> list[str]:
    env = {key: value for key, value in os.environ.items() if key != "OPENBLAS_NUM_THREADS"}
    ran = subprocess.run(
        [sys.executable, "-c", _PROGRAM + program, *arguments],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        env=env,
    )
    return ran.stdout.splitlines()


def test_a_copy_finds_what_this_process_would() -> None:
    imported, same, outcomes = _printed(_ANSWERS)
    assert imported == "False False"
    assert same == str([True] * 6)
    # The axis is another, an integer has no Relu at 13, and there is no such operator.
    failures, unchecked = [0, 0, 1, 0, 0, 0], [0, 0, 0, 1, 0, 1]
    assert outcomes == f"{[*map(bool, failures)]} {[*map(bool, unchecked)]}"


@pytest.mark.parametrize("arguments", [(), ("end",)])
def test_what_a_copy_has_not_answered_is_checked_here(arguments: tuple[str, ...]) -> None:
    assert _printed(_ENDS, *arguments) == [str([True] * 6)]


def test_what_is_printed_there_is_no_answer() -> None:
    printed = _printed("""
from onnxreduce_cli.verification.sites import pair_check

def check(pair, seed, most):
    os.write(1, b"printed by native code")
    print("and by Python", flush=True)
    return true(pair, seed, most)

elsewhere.end()
true, pair_check.check_pair = pair_check.check_pair, check
elsewhere = PairProcess()
print("in the copy" if told(elsewhere.check(pairs[0], 0)) == told(true(pairs[0], 0)) else "")
""")
    assert printed == ["in the copy"]


#: Lets 3 processors be there; what a pair's check finds tells the process that it was checked in.
_SHARED = """
from onnxreduce_cli.verification.sites import pair_check

elsewhere.end()
os.sched_getaffinity = lambda _: {0, 1, 2}
this, true = os.getpid(), pair_check.check_pair

def check(pair, seed, most):
    found = true(pair, seed, most)
    found.remarks.append(str(os.getpid()))
    return found

def many(number):
    return [pairs[at % 3]._replace(promised=dict(o0=(None, 1))) for at in range(number)]

def checked(given):
    for item in given:
        elsewhere.begin(item, 0)
    return [elsewhere.check(item, 0) for item in given]

def same(found):
    wanted = [told(true(item, 0, None))[:4] for item in given[:3]]
    return all(told(item)[:4] == wanted[at % 3] for at, item in enumerate(found))

pair_check.check_pair = check
elsewhere = PairProcess()
"""


def test_many_pairs_are_shared_among_as_many_processes_as_there_are_processors() -> None:
    printed = _printed(
        _SHARED
        + """
for number in (5, 6, 20, 48, 110):
    given = many(number)
    found = checked(given)
    print(number, same(found), len({item.remarks[-1] for item in found}))
print(str(this) in {item.remarks[-1] for item in found})
"""
    )
    # In each request 3 at most; 110 pairs are three requests: 48, 48, 14.
    assert printed == ["5 True 1", "6 True 2", "20 True 3", "48 True 3", "110 True 7", "False"]


def test_what_a_process_with_a_share_does_not_answer_is_checked_here() -> None:
    printed = _printed(
        _SHARED
        + """
elsewhere.end()

def check_and_end(pair, seed, most):
    if os.getpid() != this and os.getppid() != this:
        os._exit(3)
    return check(pair, seed, most)

pair_check.check_pair = check_and_end
elsewhere = PairProcess()
given = many(12)
found = checked(given)
print(same(found), [item.remarks[-1] == str(this) for item in found])
"""
    )
    assert printed == [f"True {[False] + [True] * 11}"]


def test_where_no_more_processes_start_one_checks_all() -> None:
    printed = _printed(
        _SHARED
        + """
elsewhere.end()
start = os.fork

def refuse():
    if os.getpid() == this:
        return start()
    raise OSError("Resource temporarily unavailable")

os.fork = refuse
elsewhere = PairProcess()
given = many(12)
found = checked(given)
print(same(found), len({item.remarks[-1] for item in found} - {str(this)}))
"""
    )
    assert printed == ["True 1"]
