"""Rows and tables that tests of the experiments share."""

import gzip
import wave

import numpy as np

from experiments.runner.plan import load_suite
from experiments.runner.run import Run, row_of

SESSION = {"threads": 1, "dgemm_gflops": 50.0, "versions": {"rwf": "0.1.0"}}


def write_table(directory, name, X, y):
    with gzip.open(directory / f"{name}.csv.gz", "wt") as lines:
        lines.write(",".join(f"x{j}" for j in range(X.shape[1])) + ",y\n")
        np.savetxt(lines, np.column_stack([X, y]), delimiter=",")


def stored_rows():
    """Two tasks and four methods: a clear best, a tie, one failure of three, one of all."""
    values = {
        ("airfoil", "rwf"): (1.00, 1.10, 1.20),
        ("airfoil", "rff"): (1.12, 1.12, 1.21),
        ("airfoil", "linear"): (4.0, 4.0, 4.3),
        ("airfoil", "rff-3"): (0.9, "TimeoutError: no result", 0.9),
        ("naval", "rwf"): (1.5e-5, 1.6e-5, 1.7e-5),
        ("naval", "rff"): (1.2e-5, 1.3e-5, 1.4e-5),
        ("naval", "linear"): (5e-3, 5e-3, 5e-3),
        ("naval", "rff-3"): ("ValueError: no",) * 3,
    }
    rows = []
    for (task, method), scores in values.items():
        for split, score in enumerate(scores):
            outcome = {"error": score} if isinstance(score, str) else {"rmse": score}
            rows.append(row_of(Run(task, method, split), outcome, SESSION))
    return rows


def atoms_rows():
    return [
        row_of(run, {"rmse": 1.0 + 4 * run.split / run.settings["n_components"]}, SESSION)
        for run in load_suite("atoms").runs()
    ]


def write_wav(path, samples):
    path.parent.mkdir(parents=True, exist_ok=True)
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(16_000)
        file.writeframes(np.asarray(samples).astype("<i2").tobytes())


def vowel(rng, pitch, n=1600):
    """Harmonics that fade, in noise: every band has energy, and all vary."""
    t = np.arange(n) / 16_000
    tone = sum(np.sin(2 * np.pi * k * pitch * t) / k for k in range(1, 20))
    return 700 * tone * rng.uniform(0.3, 1) * (1 + t * 9) + rng.normal(0, 20, n)


def write_grid(directory, name, n=40):
    """A smooth surface on a grid of lines and columns that are not square, in RWF_DATA."""
    x, y = np.meshgrid(5 + 0.1 * np.arange(n), -3 + 0.2 * np.arange(n // 2))
    X = np.column_stack([x.ravel(), y.ravel()])
    z = 400 + 30 * np.sin(2 * X[:, 0]) + 10 * X[:, 1]
    lines = np.column_stack([X, z])
    np.savetxt(directory / f"{name}.csv.gz", lines, delimiter=",", header="x,y,z")
    return X, z
