"""ModelScore: prefers the node on which a trained model expects the pod to run fastest.

The model (model.json, made by train.py) predicts the slowdown of a pod from how full its node will be. It is read once;
a prediction for all nodes is one multiplication of a matrix of features with the weights.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kubesched.framework import CycleState, NodeTable, PodInfo, Scores

Matrix = NDArray[np.float64]

FEATURES = ("cpu", "memory", "pods", "cpu_squared", "cpu_times_memory")


@dataclass(frozen=True)
class ModelScoreArgs:
    model: str = "model.json"
    """A path; one that is not absolute starts at this file."""
    worst: float = 3.0
    """The slowdown from which on a node gets no points."""

    def __post_init__(self) -> None:
        if self.worst <= 1:
            raise ValueError("worst must be above 1, which is no slowdown at all")


@dataclass(frozen=True)
class SlowdownModel:
    constant: float
    weights: Matrix

    def predict(self, features: Matrix) -> Matrix:
        """(n_nodes,) how many times as long the pod takes as on an empty node."""
        predicted: Matrix = self.constant + features @ self.weights
        return predicted


class ModelScore:
    name = "ModelScore"
    args_type = ModelScoreArgs
    default_weight = 3

    def __init__(self, args: ModelScoreArgs) -> None:
        self.model = read_model(Path(__file__).resolve().parent / args.model)
        self.worst = args.worst

    def score(self, cycle: CycleState, pod: PodInfo, nodes: NodeTable) -> Scores:
        slowdown = self.model.predict(features_of(pod, nodes))
        share = np.clip((slowdown - 1) / (self.worst - 1), 0, 1)
        return np.rint(100 * (1 - share)).astype(np.int64)


def features_of(pod: PodInfo, nodes: NodeTable) -> Matrix:
    """(n_nodes, n_features): shares in use, 0 to 1, with the pod counted in. train.py computes the same."""
    wanted = pod.resources
    cpu = _share(nodes.nonzero_cpu_milli + wanted.nonzero_cpu_milli, nodes.allocatable("cpu"))
    memory = _share(nodes.nonzero_memory_bytes + wanted.nonzero_memory_bytes, nodes.allocatable("memory"))
    pods = _share(nodes.pod_counts + 1, nodes.allowed_pods)
    return np.column_stack([cpu, memory, pods, cpu**2, cpu * memory])


def _share(used: NDArray[np.int64], of: NDArray[np.int64]) -> Matrix:
    """A node that has none of it counts as full."""
    return np.where(of > 0, np.minimum(used / np.maximum(of, 1), 1.0), 1.0)


@cache
def read_model(path: Path) -> SlowdownModel:
    """Raises ValueError, which is told as a validation error in the plugin's arguments, for what is no such model."""
    try:
        found = json.loads(path.read_text())
        weights = np.array([float(found["weights"][name]) for name in FEATURES])
        return SlowdownModel(float(found["constant"]), weights)
    except (OSError, KeyError, TypeError, json.JSONDecodeError) as problem:
        raise ValueError(f"{path}: cannot be read as a model: {problem}") from None
