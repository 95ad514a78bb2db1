"""Every step has a test: one named after it, or the one that the table below names.

That such a test takes the step, and runs models before and after, is noted while it runs.
"""

from __future__ import annotations

import importlib

import pytest

import onnxreduce_cli.steps.table  # noqa: F401 - registers the steps
from onnxreduce_cli.steps.registry import STEPS
from tests.steps.taken import CALLED, FUNCTIONS, PROVEN, step_name

#: Steps by the test that takes them, module and name, where no test is named after the step.
TESTED = {
    ("test_activations", "test_element_wise"): (
        "activations.gelu",
        "activations.hard_swish",
        "activations.mish",
        "activations.shrink",
        "activations.swiglu",
        "activations.swish",
        "activations.thresholded_relu",
        "choices.is_inf",
        "choices.is_nan",
        "choices.sign",
    ),
    ("test_activations", "test_group_normalization_by_group"): ("layer_norms.group_normalization",),
    ("test_activations", "test_layer_normalization"): ("layer_norms.layer_normalization",),
    ("test_activations", "test_mean_variance_axes"): ("layer_norms.mean_variance_axes",),
    ("test_activations", "test_mean_variance_normalization"): (
        "layer_norms.mean_variance_normalization",
    ),
    ("test_activations", "test_or_equal"): ("choices.or_equal",),
    ("test_activations", "test_rms_normalization"): ("layer_norms.rms_normalization",),
    ("test_activations", "test_where"): ("choices.where",),
    ("test_attention", "test_a_short_mask_is_padded"): ("attention.mask_padded",),
    ("test_attention", "test_masks_of_full_length"): ("attention.mask_expanded",),
    ("test_broadcast", "test_up_and_down_again"): (
        "broadcast.with_attributes",
        "broadcast.without_attributes",
    ),
    ("test_casts", "test_infinities_of_fnuz"): (
        "casts.infinities_down",
        "casts.infinities_up",
    ),
    ("test_casts", "test_number_to_name_and_back"): ("casts.to_number",),
    ("test_casts", "test_saturate_goes_below_19"): ("casts.without_saturate",),
    ("test_batch_normalization", "test_batch_in_every_rank"): (
        "batch_normalization.batch_before_6",
        "batch_normalization.one_dtype",
        "batch_normalization.with_channels",
        "batch_normalization.with_is_test",
        "batch_normalization.without_consumed_inputs",
        "batch_normalization.without_is_test",
        "batch_normalization.without_spatial",
        "batch_normalization.without_training_mode",
    ),
    ("test_batch_normalization", "test_training_up"): ("batch_normalization.with_training_mode",),
    ("test_conv_transpose", "test_conv_transpose"): ("conv_transpose.odd_padding",),
    ("test_constant", "test_every_form_in_a_graph"): (
        "constant.floats_only",
        "constant.scalars_to_tensor",
        "constant.sparse_to_dense",
    ),
    ("test_dft", "test_axis_up"): (
        "dft.axis_to_attribute",
        "dft.axis_to_input",
    ),
    ("test_flat_places", "test_cum_prod"): ("rounding.cum_prod",),
    ("test_flat_places", "test_cum_sum"): ("rounding.cum_sum",),
    ("test_flat_places", "test_gather_elements"): ("gather_nd.gather_elements",),
    ("test_flat_places", "test_gather_nd"): ("gather_nd.gather_nd",),
    ("test_flat_places", "test_without_batch_dims"): ("gather_nd.without_batch_dims",),
    ("test_flat_places", "test_round"): ("rounding.round_",),
    ("test_flat_places", "test_scatter_nd"): ("gather_nd.scatter_nd",),
    ("test_functions", "test_losses"): ("functions.inline",),
    ("test_generators", "test_einsum"): ("einsum.einsum",),
    ("test_generators", "test_range"): ("generators.range_",),
    ("test_grid_sample", "test_grid_sample_in_every_mode"): ("grid_sample.sampled_by_gather",),
    ("test_grid_sample", "test_names_of_modes"): (
        "grid_sample.newer_mode",
        "grid_sample.older_mode",
    ),
    ("test_integer_products", "test_newcomers"): ("newcomers.alone",),
    ("test_normalization", "test_group_down"): ("normalization.with_instance_normalization",),
    ("test_normalization", "test_group_up"): ("normalization.parameters_for_channels",),
    ("test_normalization", "test_instance"): (
        "normalization.instance_before_6",
        "normalization.without_consumed_inputs",
    ),
    ("test_pool", "test_ceil_mode"): (
        "pool.no_window_in_padding",
        "pool.window_left_out",
        "pool.without_ceil_mode",
    ),
    ("test_pool", "test_p_before_2"): (
        "pool.float_p",
        "pool.whole_p",
    ),
    ("test_quantize", "test_a_scale_for_each_index"): (
        "quantize.dequantize_per_tensor",
        "quantize.quantize_per_tensor",
    ),
    ("test_quantize", "test_one_scale"): (
        "quantize.dequantize_blocks",
        "quantize.quantize_blocks",
    ),
    ("test_quantize_dtypes", "test_constants_are_held"): ("quantize_dtypes.dequantize_constants",),
    ("test_quantize_dtypes", "test_dequantized_dtype"): (
        "quantize_dtypes.multiply_in_output_dtype",
    ),
    ("test_quantize_dtypes", "test_dtypes_apart"): ("quantize_dtypes.divide_in_one_dtype",),
    ("test_quantize_dtypes", "test_halves"): (
        "quantize_dtypes.dequantize_to_halves",
        "quantize_dtypes.quantize_halves",
    ),
    ("test_quantize_dtypes", "test_int32_is_cast"): ("quantize_dtypes.one_type",),
    ("test_recurrent", "test_sequence_first_stays"): (
        "recurrent.with_output_sequence",
        "recurrent.without_output_sequence",
    ),
    ("test_reduce", "test_nothing_and_rank_zero"): (
        "reduce.axes_to_attribute",
        "reduce.axes_to_input",
    ),
    ("test_resize", "test_nearest_down"): (
        "resize.absent_inputs_empty",
        "resize.all_axes",
        "resize.empty_scales_left_out",
        "resize.mapping_left_out",
        "resize.whole_sizes",
    ),
    ("test_upsample", "test_upsample_before_7"): (
        "upsample.scales_for_every_axis",
        "upsample.scales_for_height_and_width",
    ),
    ("test_upsample", "test_upsample_up_and_back"): (
        "resize.mapping_written_out",
        "resize.resize_to_upsample",
        "upsample.scales_to_attribute",
        "upsample.scales_to_input",
        "upsample.upsample_to_resize",
    ),
    ("test_roi_align", "test_regions_of_every_kind"): (
        "roi_align.aligned_by_gather",
        "roi_align.without_mapping",
    ),
    ("test_roi_align", "test_roi_align"): ("roi_align.output_half_pixel",),
    ("test_scan", "test_down"): (
        "scan.negative_axes",
        "scan.with_batch",
    ),
    ("test_scan", "test_up"): ("scan.without_batch",),
    ("test_softmax", "test_both_ways_for_every_axis"): (
        "softmax.matrix_to_one_axis",
        "softmax.negative_axis",
        "softmax.one_axis_to_matrix",
    ),
    ("test_squeeze", "test_negative_axes"): ("squeeze.axes_to_attribute",),
    ("test_squeeze", "test_there_and_back"): ("squeeze.axes_to_input",),
    ("test_sequences", "test_a_part_of_a_known_sequence"): ("sequences.sequence_at",),
    ("test_sequences", "test_a_known_sequence_put_together"): ("sequences.concat_from_sequence",),
    ("test_sequences", "test_a_position_known_at_run_time"): ("sequences.held",),
    ("test_widening", "test_celu"): ("activations.celu_of_doubles",),
}


#: Steps that change nothing: they let a node pass, or block it.
PASSING = {
    "sequences.held",
    "gather.without_extremes",
    "newcomers.alone",
    "pool.no_window_in_padding",
    "conv_transpose.odd_padding",
}


def _functions() -> list[str]:
    return sorted({step_name(step.apply) for step in STEPS.values() if step.apply is not None})


def _tests(module: str) -> list[str]:
    try:
        found = importlib.import_module(f"tests.steps.{module}")
    except ModuleNotFoundError:
        return []
    return [name for name in dir(found) if name.startswith("test_")]


def test_the_steps_are_all_here():
    assert len(_functions()) >= 180
    listed = [step for steps in TESTED.values() for step in steps]
    assert len(listed) == len(set(listed))
    assert set(listed) <= set(_functions()), "the table names steps that are gone"


@pytest.mark.parametrize("step", _functions())
def test_step_is_tested(step):
    module, _, function = step.partition(".")
    tests = _tests(f"test_{module}")
    by_table = next((place for place, steps in TESTED.items() if step in steps), None)
    if by_table is None:
        assert any(f"_{function}_" in f"{name[4:]}_" for name in tests), (
            f"no test in test_{module}.py is named after {function}"
        )
    else:
        assert by_table[1] in _tests(by_table[0]), f"{by_table} is gone"


@pytest.mark.newest
def test_every_step_was_taken():
    """Runs after all others, where all of them run: what they took is noted in `conftest`.

    With an older onnx the tests of the newest operators are left out, and so is this.
    """
    passing = {function for function in FUNCTIONS if step_name(function) in PASSING}
    unproven = sorted(FUNCTIONS[item] for item in FUNCTIONS.keys() - PROVEN - passing)
    assert not unproven, "no test ran a model before and after these"
    assert passing <= CALLED
    assert not passing & PROVEN
