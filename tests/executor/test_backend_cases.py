"""onnx's own node cases through the executor: right or unsupported, never wrong."""

from __future__ import annotations

import onnx

from onnxreduce_cli.executor import Executor, UnsupportedError
from tests.node_cases import collected, plain, same

# What the executor says it cannot do, by the beginning of the case's name.
UNSUPPORTED = (
    "test_adagrad", "test_adam", "test_momentum", "test_nesterov_momentum",  # training
    "test_training_dropout", "test_bernoulli",  # random
    "test_ai_onnx_ml_", "test_flexattention",  # other domains
    "test_cast_e8m0_FLOAT16_to", "test_cast_e8m0_FLOAT_to",  # rounding modes
    "test_image_decoder",
    "test_resize_downsample_scales_cubic_align_corners",  # a fractional length, see resample
    "test_resize_downsample_scales_linear_align_corners",
)  # fmt: skip

# Expected values that a later onnx corrected: 0 / 0 for a zero norm, and quantised values
# that wrapped around instead of being cut off.
CORRECTED_LATER = {
    "1.19": {
        "test_l2normalization_axis_0",
        "test_qlinearmatmul_2D_int8_float16",
        "test_qlinearmatmul_2D_int8_float32",
        "test_qlinearmatmul_3D_int8_float16",
        "test_qlinearmatmul_3D_int8_float32",
    }
}.get(".".join(onnx.__version__.split(".")[:2]), set())


def test_every_case_is_right_or_declared_unsupported() -> None:
    right, unsupported, wrong = 0, [], []
    for case in collected():
        names = [value.name for value in case.model.graph.input]
        for inputs, outputs in case.data_sets:
            feeds = dict(zip(names, map(plain, inputs), strict=False))
            try:
                got = list(Executor(case.model).run(feeds).values())
            except UnsupportedError:
                unsupported.append(case.name)
                continue
            rtol = max(case.rtol or 0, 1e-3)
            if len(got) == len(outputs) and all(
                same(plain(w), g, rtol) for w, g in zip(outputs, got, strict=True)
            ):
                right += 1
            else:
                wrong.append(case.name)
    assert set(wrong) == CORRECTED_LATER
    assert [name for name in unsupported if not name.startswith(UNSUPPORTED)] == []
    assert len(unsupported) <= 60
    assert right >= 1_570
