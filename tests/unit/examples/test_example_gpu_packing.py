"""GPU nodes fill up one after the other, and are left to pods that need GPUs."""

from __future__ import annotations

from typing import Any

import pytest
from example_plugins import objects_of, placed, plugin_of, raw_scores

from kubesched.testing import make

GPU = "nvidia.com/gpu"
GPU_PACKING = plugin_of("gpu-packing")


def gpu_node(name: str, gpus: int = 8) -> dict[str, Any]:
    return make.node(name, cpu=64, memory="256Gi", allocatable={GPU: gpus})


def gpu_pod(name: str, gpus: int, on: str = "") -> dict[str, Any]:
    return make.pod(name, on=on, cpu=1, requests={GPU: gpus})


def test_the_example_goes_to_the_node_that_is_in_use() -> None:
    objects = objects_of("gpu-packing")
    assert placed(objects, "lab/train-1", []).node_name == "gpu-2"
    assert placed(objects, "lab/train-1", [GPU_PACKING]).node_name == "gpu-1"


def test_the_score_is_the_share_in_use_with_the_pod() -> None:
    objects = [gpu_node("a"), gpu_node("b"), gpu_pod("other", 4, on="a"), gpu_pod("new", 2)]
    assert raw_scores(placed(objects, "default/new", [GPU_PACKING]), "GpuPacking") == {"a": 75, "b": 25}


def test_a_full_node_is_left_to_node_resources_fit() -> None:
    objects = [gpu_node("a", 2), gpu_pod("other", 2, on="a"), gpu_pod("new", 1)]
    assert f"1 Insufficient {GPU}" in placed(objects, "default/new", [GPU_PACKING]).message


@pytest.mark.parametrize(
    ("reserve", "nodes", "expected"),
    [
        pytest.param(True, ("gpu", "plain"), "plain", id="kept off where there is another node"),
        pytest.param(True, ("gpu",), "", id="kept off where there is none"),
        pytest.param(False, ("gpu", "plain"), "plain", id="sent there last"),
        pytest.param(False, ("gpu",), "gpu", id="but sent there"),
    ],
)
def test_a_pod_without_gpus(reserve: bool, nodes: tuple[str, ...], expected: str) -> None:
    known = {"gpu": gpu_node("gpu"), "plain": make.node("plain", cpu=1, memory="2Gi")}
    objects = [*(known[name] for name in nodes), make.pod("web", cpu="500m")]
    decision = placed(objects, "default/web", [GPU_PACKING], {"reserve": reserve})
    assert decision.node_name == expected
    if not expected:
        assert f"1 node(s) were reserved for pods that request {GPU}" in decision.message
