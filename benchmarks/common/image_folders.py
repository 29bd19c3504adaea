"""Images in a folder per class, decoded into one array."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.utils import Bunch

SUFFIXES = (".jpeg", ".jpg", ".png", ".webp")


def load_image_folder(path: Path, image_size: int | None = None) -> Bunch:
    """Read ``path/CLASS/IMAGE`` as uint8 images (n, 3, H, W), in the order of the file names.

    Images are stretched to `image_size` pixels on each side. If it is None, all must be equal in
    size. A :obj:`joblib.parallel_config` context sets the number of threads.
    """
    files = sorted(
        file
        for file in path.glob("*/*")
        if file.suffix.lower() in SUFFIXES and not file.name.startswith(".")
    )
    if not files:
        raise FileNotFoundError(f"{path} has no images in class folders.")
    images = Parallel(require="sharedmem", batch_size=64)(
        delayed(_decode)(file, image_size) for file in files
    )
    names, target = np.unique([file.parent.name for file in files], return_inverse=True)
    return Bunch(images=np.stack(images), target=target, target_names=names)


def _decode(file: Path, image_size: int | None) -> NDArray[np.uint8]:
    from PIL import Image, ImageOps

    image: Any = ImageOps.exif_transpose(Image.open(file)).convert("RGB")
    if image_size is not None:
        image = image.resize((image_size, image_size), Image.Resampling.BILINEAR)
    return np.asarray(image).transpose(2, 0, 1)
