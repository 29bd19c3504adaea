"""Fine-tuning on images of a folder that are not held in memory: anonymous memory and time.

Writes JPEG files of several sizes, reads them into a memory map, and trains SqueezeNet for one
epoch with crops, flips and colours. Writes the numbers with versions as JSON.
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch

from auxcst_sklearn import CostSensitiveAuxNet
from auxcst_sklearn.datasets import load_image_folder
from auxcst_sklearn.modules import RandomFlipShift
from benchmarks.common.folders import RESULTS
from benchmarks.common.json_files import write_json
from benchmarks.common.options import make_parser
from benchmarks.common.provenance import provenance
from benchmarks.paper.pretrained import SqueezeNet
from benchmarks.speed.bench_large import anonymous_mib, measured

N_CLASSES = 10


def write_images(folder: Path, n_images: int) -> None:
    """Coarse noise, enlarged to sides of 200 to 320 pixels."""
    from PIL import Image

    rng = np.random.default_rng(0)
    for i in range(n_images):
        path = folder / f"class{i % N_CLASSES}" / f"{i:06}.jpg"
        path.parent.mkdir(exist_ok=True)
        noise = Image.fromarray(rng.integers(256, size=(12, 12, 3), dtype=np.uint8))
        noise.resize(tuple(rng.integers(200, 320, 2).tolist())).save(path)


def main() -> None:
    parser = make_parser(__doc__, out=RESULTS / "folder.json")
    parser.add_argument("--n-images", type=int, default=20_000)
    parser.add_argument("--image-size", type=int, default=224)
    parser.add_argument("--limit", type=float, default=2000, help="MiB of anonymous memory, in all")
    options = parser.parse_args()
    torch.set_num_threads(1)
    with TemporaryDirectory() as folder:
        write_images(Path(folder), options.n_images)
        with measured() as read:
            bunch = load_image_folder(
                folder, options.image_size, resize="crop", memmap=f"{folder}/images.npy"
            )
        off = abs(np.subtract.outer(range(N_CLASSES), range(N_CLASSES)))
        model = CostSensitiveAuxNet(
            SqueezeNet,
            freeze=["features"],  # to save time
            cost_matrix=off,
            augmentation=RandomFlipShift(),
            max_epochs=1,
            batch_size=32,
            precision="bf16",
            random_state=0,
        )
        before = anonymous_mib()
        with measured() as fit:
            model.fit(bunch.images, bunch.target)
    numbers = {
        "images": options.n_images,
        "image_mib": round(bunch.images.nbytes / 2**20),
        "float32_mib": round(4 * bunch.images.nbytes / 2**20),
        "read_mib": round(read.mib),
        "read_images_per_second": round(options.n_images / read.seconds),
        "fit_mib": round(fit.mib),
        "largest_mib": round(before + fit.mib),
        "fit_cpu_milliseconds_per_image": round(1000 * fit.cpu / options.n_images, 1),
    }
    print(numbers)
    write_json(options.out, {**provenance(), **numbers})
    if before + fit.mib > options.limit:
        sys.exit(f"More than {options.limit:g} MiB.")


if __name__ == "__main__":
    main()
