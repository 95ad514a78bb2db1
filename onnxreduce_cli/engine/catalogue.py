"""The catalogue of passes: what each is called, and how what it does is checked.

A pass changes a model beside the steps across boundaries, for an option or where nodes block. Those
that `preparation` and `SitePlan.passes` name are checked as they say here. The result of any must
also pass onnx's full check and load in ONNX Runtime where the source does.
"""

from __future__ import annotations

from typing import Literal, NamedTuple


class Pass(NamedTuple):
    """A pass.

    Attributes:
        name: what messages call it: the option that requests it, if there is one.
        checked: by ``sites`` where each change is one node and its replacement, which run before
            and after; ``whole`` where the whole models are compared; ``form`` where nothing changes
            that is computed.
        advice: what the user can do where its check fails.
    """

    name: str
    checked: Literal["sites", "whole", "form"]
    advice: str


INLINING = Pass("--inline-functions", "whole", "leave --inline-functions out")
DIMENSIONS = Pass("--dim", "whole", "leave --dim out, or fix fewer dimensions")
FOLDING = Pass("--fold", "whole", "leave --fold out")
FOLDING_FOR_RUNTIME = Pass("constants folded", "whole", "leave --for or --allow-ops out")
DTYPES = Pass("--dtype", "whole", "leave --dtype out")
INTERFACE = Pass("--io-dtype", "whole", "leave --io-dtype out")
METADATA = Pass("--strip-metadata", "form", "leave --strip-metadata out")
SEQUENCES = Pass("sequences written out as tensors", "whole", "choose another opset")
BLOCKED_FUNCTIONS = Pass("functions inlined", "whole", "choose another opset")
SPECIALISATION = Pass("functions specialised", "sites", "choose another opset")
CONTRACTION = Pass("--contract", "sites", "leave --contract out, or name fewer operators")
EXPANSION = Pass("--expand", "sites", "leave --expand out, or name fewer operators")
AVOIDANCE = Pass("--for", "sites", "choose another opset with --opset, or leave --for out")
ALLOWED = Pass("--allow-ops", "sites", "allow more operators with --allow-ops")
