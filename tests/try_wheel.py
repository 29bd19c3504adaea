"""Runs the example of the README with the package that is installed, not with a checkout.

`make test-dist` starts it in an environment with the wheel, what it depends on, and nothing else.
"""

import contextlib
import io
import os
import re
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

import numpy as np

import auxcst_sklearn

EXAMPLE = re.compile(
    r"code-block:: python\n\n(.*?)\n\n\.\. code-block:: text\n\n(.*?)\n\n", re.DOTALL
)
FIGURE, SECONDS = re.compile(r"\b\d+\.\d+\b"), re.compile(r"\b[\d.]+ s\b")


def is_printed(printed: str, expected: str) -> bool:
    """Whether texts agree but for seconds, and figures nearly: other releases grow other trees."""
    texts = [SECONDS.sub("", text) for text in (printed, expected)]
    words, expected_words = (FIGURE.sub("", text).split() for text in texts)
    figures = [[float(figure) for figure in FIGURE.findall(text)] for text in texts]
    return words == expected_words and np.allclose(*figures, rtol=0, atol=0.1)


def printed_by(code: str) -> str:
    """What code prints that runs as a module, whose functions see its names."""
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(compile(code, "README.rst", "exec"), {"__name__": "readme"})
    return output.getvalue()


def main() -> None:
    text = Path(sys.argv[1]).read_text(encoding="utf-8")
    code, expected = EXAMPLE.search(text).groups()

    home = Path(auxcst_sklearn.__file__).resolve()
    if Path(sys.prefix).resolve() not in home.parents:
        sys.exit(f"{home} is not in the environment {sys.prefix}")

    os.chdir(tempfile.mkdtemp())
    output = printed_by(re.sub(r"^    ", "", code, flags=re.M))
    print(output, end="")
    if not is_printed(output, expected):
        sys.exit(f"The README says otherwise:\n{expected}")

    if not Path(home.parent, "py.typed").exists():
        sys.exit("The wheel lacks the file py.typed")
    print(f"auxcst_sklearn {version('auxcst_sklearn')} from {home.parent}")


if __name__ == "__main__":
    main()
