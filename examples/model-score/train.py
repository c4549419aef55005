"""Trains the model of model_score.py: how much slower does a pod run on a node, the fuller the node is?

    python examples/model-score/train.py examples/model-score/model.json

The measurements here are made up (`measurements`), by a rule that the model does not know and with noise on top. Put
your own in their place: one row of features per pod that ran, and how many times as long it took as on an empty node.
The same seed gives the same model, to the last digit.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

FEATURES = ("cpu", "memory", "pods", "cpu_squared", "cpu_times_memory")
Matrix = NDArray[np.float64]


def features(cpu: Matrix, memory: Matrix, pods: Matrix) -> Matrix:
    """(n, n_features) from shares in use, 0 to 1, with the pod counted in. model_score.py computes the same."""
    return np.column_stack([cpu, memory, pods, cpu**2, cpu * memory])


def measurements(seed: int, n: int = 4_000) -> tuple[Matrix, Matrix]:
    """(features, slowdowns) of pods that ran."""
    chance = np.random.default_rng(seed)
    cpu, memory, pods = chance.uniform(0, 1, (3, n))
    slowdown = 1 + 0.1 * cpu + 1.8 * np.maximum(cpu - 0.6, 0) + 0.6 * cpu * memory + 0.2 * pods
    return features(cpu, memory, pods), slowdown + chance.normal(0, 0.05, n)


def train(rows: Matrix, slowdowns: Matrix, penalty: float = 1e-3) -> dict[str, object]:
    """Ridge regression: weights by feature, and how far off the model is on rows that it has not seen."""
    n_train = len(rows) * 3 // 4
    known, unseen = _with_constant(rows[:n_train]), _with_constant(rows[n_train:])
    penalties = penalty * np.eye(known.shape[1])
    weights = np.linalg.solve(known.T @ known + penalties, known.T @ slowdowns[:n_train])
    errors = unseen @ weights - slowdowns[n_train:]
    return {
        "predicts": "slowdown",
        "constant": round(float(weights[0]), 6),
        "weights": {name: round(float(weight), 6) for name, weight in zip(FEATURES, weights[1:], strict=True)},
        "mean_error": round(float(np.abs(errors).mean()), 4),
    }


def _with_constant(rows: Matrix) -> Matrix:
    return np.column_stack([np.ones(len(rows)), rows])


if __name__ == "__main__":
    model = train(*measurements(seed=0))
    Path(sys.argv[1]).write_text(json.dumps(model, indent=2) + "\n")
