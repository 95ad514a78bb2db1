"""Requests to run models that are answered in the process that makes them.

Only a process that is there to check makes them so: what ends ONNX Runtime ends it.
"""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO

from onnxreduce_cli.verification import messages, ort_worker
from onnxreduce_cli.verification.limits import Limits
from onnxreduce_cli.verification.process import Process, Reply, Step, restore
from onnxreduce_cli.verification.serving import answered
from onnxreduce_cli.verification.watch import Watch


class ProcessHere(Process):
    """This process, as what runs ONNX Runtime for it."""

    def __init__(self, watch: Watch) -> None:
        """Import ONNX Runtime; `watch` ends this process where a model goes beyond its limits."""
        self.forgotten = []
        self.grown = 0
        self._watch = watch
        self._answer = ort_worker.prepare()

    @property
    def alive(self) -> bool:
        """True, as long as somebody asks."""
        return True

    def send(self, steps: Sequence[Step], limits: Limits, *, small: bool = False) -> Reply:
        """Answer a request; see `Process.send`. Values change as on the way to another process."""
        there, back = BytesIO(), BytesIO()
        messages.write(there, *self.request(steps, limits))
        there.seek(0)
        header, values = messages.read(there, lambda bits: bits)
        told, found = answered(header, values, self._answer, self._watch)
        messages.write(back, {"results": told}, found)
        back.seek(0)
        reply = Reply(self, limits, small=small)
        reply.take(*messages.read(back, restore))
        return reply
