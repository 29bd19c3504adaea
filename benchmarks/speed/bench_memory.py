"""Memory that CostSensitiveAuxCNN needs for 50,000 colour images of 32 x 32 bytes.

Each case runs in a fresh process, which reports the largest resident memory it ever had. The
images are random: memory does not depend on what they show. Writes the table with versions as
JSON, and ends with an error where a case exceeds the limit.
"""

from __future__ import annotations

import subprocess
import sys

from benchmarks.common.folders import RESULTS, ROOT
from benchmarks.common.json_files import write_json
from benchmarks.common.options import make_parser
from benchmarks.common.provenance import provenance

CASES = {
    "imports and images": "",
    "fit, one epoch": "model.fit(X, y)",
    "the same, one network": "model.set_params(n_networks=1).fit(X, y)",
    "fit on 500 images, predict all": "model.fit(X[:500], y[:500]).predict(X)",
}

SCRIPT = """
import resource, time
import numpy as np
import torch
from auxcst_sklearn import CostSensitiveAuxCNN

torch.set_num_threads(1)
rng = np.random.default_rng(0)
X = rng.integers(256, size=({n_images}, 3, 32, 32), dtype=np.uint8)
y = rng.integers(10, size={n_images})
model = CostSensitiveAuxCNN(max_epochs=1, device="cpu", random_state=0)
CostSensitiveAuxCNN(max_epochs=1, device="cpu").fit(X[:50], y[:50])  # loads what fitting needs
start = time.process_time()
{statement}
seconds = time.process_time() - start
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, seconds)
"""


def measure(statement: str, n_images: int) -> dict[str, float]:
    """Peak memory and CPU time of a statement, in a process of its own."""
    code = SCRIPT.format(statement=statement, n_images=n_images)
    command = [sys.executable, "-c", code]
    run = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    peak, seconds = map(float, run.stdout.split())
    unit = 1 if sys.platform == "darwin" else 1024  # bytes on macOS, kilobytes on Linux
    return {"peak_megabytes": round(peak * unit / 1e6), "cpu_seconds": round(seconds, 1)}


def main() -> None:
    parser = make_parser(__doc__, out=RESULTS / "memory.json")
    parser.add_argument("--n-images", type=int, default=50_000, help="number of images")
    parser.add_argument("--limit", type=float, default=1500, help="megabytes")
    options = parser.parse_args()

    print(f"{'case':32s}{'peak MB':>10s}{'CPU s':>10s}")
    rows = []
    for case, statement in CASES.items():
        rows.append({"case": case, **measure(statement, options.n_images)})
        print(f"{case:32s}{rows[-1]['peak_megabytes']:10d}{rows[-1]['cpu_seconds']:10.1f}")

    result = {**provenance(), "image_megabytes": options.n_images * 3072 / 1e6, "cases": rows}
    write_json(options.out, result)
    if max(row["peak_megabytes"] for row in rows) > options.limit:
        sys.exit(f"A case needs more than {options.limit:g} MB.")


if __name__ == "__main__":
    main()
