"""Use an installed rwf as the README shows: its first example, the demo, and the rwf command.

Example: python packaging/try_wheel.py README.md, in an environment with rwf[cli] and nothing else.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np

import rwf


def main(readme: Path) -> None:
    text = readme.read_text(encoding="utf-8")
    print(f"rwf {rwf.__version__} from {Path(rwf.__file__).parent}, Python {sys.version}")
    if "site-packages" not in rwf.__file__:
        sys.exit("This is a checkout, not an installed wheel.")

    example = re.search(r"```python\n(.*?)```", text, flags=re.DOTALL)
    if example is None:
        sys.exit(f"{readme} has no example of Python.")
    names: dict[str, np.ndarray] = {}
    exec(example[1], names)  # type: ignore[arg-type]

    header = {"header": "x,y", "delimiter": ",", "comments": ""}
    rows = np.column_stack([names["X"][:, 0], names["y"]])
    np.savetxt("rows.csv", rows[:250], **header)  # type: ignore[call-overload]
    np.savetxt("more.csv", rows[250:], **header)  # type: ignore[call-overload]
    for line in ["rwf demo", *re.findall(r"^rwf [^#\n]*", text, flags=re.MULTILINE)]:
        print(f"$ {line}", flush=True)
        subprocess.run([Path(sys.executable).parent / "rwf", *line.split()[1:]], check=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
