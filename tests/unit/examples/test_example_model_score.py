"""The model that is there is the one that the script trains, and the plugin asks it what it was trained on."""

from __future__ import annotations

import json
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from example_plugins import EXAMPLES, config_with, module_of, objects_of, placed, plugin_of, raw_scores

import kubesched
from kubesched.k8s.model import manifests
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.config import ConfigError
from kubesched.testing import make

FOLDER = EXAMPLES / "model-score"
MODEL_SCORE = plugin_of("model-score")
MODULE = module_of(MODEL_SCORE)
TRAINING: dict[str, Any] = runpy.run_path(str(FOLDER / "train.py"))


def test_the_script_makes_the_model_that_is_there(tmp_path: Path) -> None:
    subprocess.run([sys.executable, str(FOLDER / "train.py"), str(tmp_path / "model.json")], check=True)
    made, kept = (json.loads((folder / "model.json").read_text()) for folder in (tmp_path, FOLDER))
    assert made["weights"] == pytest.approx(kept["weights"], abs=1e-5)
    assert made["constant"] == pytest.approx(kept["constant"], abs=1e-5)


def test_the_model_is_good_enough() -> None:
    assert json.loads((FOLDER / "model.json").read_text())["mean_error"] < 0.1


def test_the_calm_node_is_preferred() -> None:
    decision = placed(objects_of("model-score"), "lab/solve", [MODEL_SCORE])
    assert decision.node_name == "calm"
    scores = raw_scores(decision, "ModelScore")
    assert scores["calm"] > scores["crowded"] + 10


def test_features_are_those_of_the_training() -> None:
    objects = manifests.from_dicts([make.node("a", cpu=4, memory="8Gi", pods=10), make.pod("p", on="a", cpu=1)]).objects
    cluster = Cluster.from_objects(objects)
    pending = cluster.signatures.info(manifests.from_dicts([make.pod("new", cpu=1, memory="2Gi")]).objects[0])  # type: ignore[arg-type]
    asked = MODULE.features_of(pending, cluster.nodes)
    cpu, memory, pods = (np.array([share]) for share in (2 / 4, (2 * 1024 + 200) / (8 * 1024), 2 / 10))
    assert asked == pytest.approx(TRAINING["features"](cpu, memory, pods))
    assert TRAINING["FEATURES"] == MODULE.FEATURES


def test_a_model_that_cannot_be_read_is_told_at_the_start(tmp_path: Path) -> None:
    broken = tmp_path / "model.json"
    broken.write_text('{"constant": 1}')
    config = config_with("ModelScore", {"model": str(broken)})
    with pytest.raises(ConfigError, match="cannot be read as a model"):
        kubesched.explain(objects_of("model-score"), "lab/solve", config, plugins=[MODEL_SCORE])
