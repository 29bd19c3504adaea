"""Architectures of timm with random weights: wrapped, fitted, pickled and exported.

``python -m benchmarks.cost.bench_timm``, where timm is installed, writes a table of the layers that
get a head, of the axes and the numbers of features that heads read, and of the largest differences
between the predictions of a model, of its pickle and of its ONNX file. Rows of architectures that
are named replace the stored ones.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import pickle
import warnings
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np
import onnxruntime
import torch

from auxcst_sklearn import CostSensitiveAuxNet
from auxcst_sklearn.onnx import to_onnx
from benchmarks.common.folders import RESULTS
from benchmarks.common.provenance import provenance

ARCHITECTURES = (
    "resnet18",
    "mobilenetv3_small_100",
    "efficientnet_b0",
    "convnext_atto",
    "vit_tiny_patch16_224",
    "densenet121",
    "regnety_002",
    "mixer_s32_224",
    "swin_tiny_patch4_window7_224",
    "mobileone_s0",
    "edgenext_xx_small",
    "ghostnet_100",
    "repvgg_a0",
)


def check(name: str) -> dict[str, Any]:
    """Wrap one architecture, and compare its predictions after a pickle and in a file."""
    import timm

    warnings.simplefilter("ignore")
    images = np.random.default_rng(0).uniform(size=(16, 3, 224, 224)).astype(np.float32)
    y = np.arange(16) % 2
    torch.manual_seed(0)
    module = timm.create_model(name, num_classes=10)
    model = CostSensitiveAuxNet(
        module, head_gradient=1, max_epochs=1, batch_size=8, random_state=0, device="cpu"
    ).fit(images, y)
    p = model.predict_proba(images)
    copy = pickle.loads(pickle.dumps(model)).predict_proba(images)
    file = onnxruntime.InferenceSession(to_onnx(model, images).SerializeToString())
    (exported,) = file.run(["probability"], {file.get_inputs()[0].name: images})
    layers, heads = model.hidden_layers_, [*model.net_.module_.networks[0].heads.values()]
    return {
        "n_heads": len(layers),
        "axes": sorted({head.axis for head in heads}),
        "in_features": [*dict.fromkeys(head.in_features for head in heads)],
        "first": layers[0],
        "last": layers[-1],
        "pickle_difference": float(np.abs(p - copy).max()),
        "onnx_difference": float(np.abs(p - exported).max()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("architectures", nargs="*", default=ARCHITECTURES)
    options = parser.parse_args()
    path = RESULTS / "timm.json"
    found = json.loads(path.read_text())["architectures"] if path.exists() else {}
    # A process for each, which native code may end.
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawn, max_tasks_per_child=1) as processes:
        for name, row in zip(
            options.architectures, processes.map(check, options.architectures), strict=True
        ):
            found[name] = row
            print(f"{name:30} {json.dumps(row)}", flush=True)
            content = {**provenance("timm", "onnxruntime"), "architectures": found}
            path.write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
