"""What the tests of the configuration share: the in-tree plugins' capabilities, and short ways to load."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kubesched.scheduler.config import Capabilities, ConfigError, load
from kubesched.scheduler.config.plugin_args import API_VERSION

# Read from kube-scheduler v1.36: the interfaces that each in-tree plugin implements.
_POINTS = {
    "SchedulingGates": "preEnqueue",
    "PrioritySort": "queueSort",
    "NodeUnschedulable": "filter",
    "NodeName": "filter",
    "TaintToleration": "filter preScore score",
    "NodeAffinity": "preFilter filter preScore score",
    "NodePorts": "preFilter filter",
    "NodeResourcesFit": "preFilter filter preScore score placementScore",
    "VolumeRestrictions": "preFilter filter",
    "NodeVolumeLimits": "preFilter filter",
    "VolumeBinding": "preFilter filter reserve preBind preScore score",
    "VolumeZone": "preFilter filter",
    "PodTopologySpread": "preFilter filter preScore score",
    "InterPodAffinity": "preFilter filter preScore score",
    "DynamicResources": "preEnqueue preFilter filter postFilter score reserve preBind",
    "DefaultPreemption": "preEnqueue postFilter",
    "NodeResourcesBalancedAllocation": "preScore score",
    "ImageLocality": "score",
    "DefaultBinder": "bind",
    "NodeDeclaredFeatures": "preFilter filter",
    "GangScheduling": "preEnqueue permit",
    "TopologyPlacementGenerator": "placementGenerate",
    "PodGroupPodsCount": "placementScore",
}


@pytest.fixture
def capabilities() -> Capabilities:
    return {name: frozenset(points.split()) for name, points in _POINTS.items()}


@pytest.fixture
def problems() -> Callable[[dict[str, Any]], list[str]]:
    """The messages that loading these fields of a configuration gives; none if it loads."""

    def messages(fields: dict[str, Any]) -> list[str]:
        try:
            load({"apiVersion": API_VERSION, "kind": "KubeSchedulerConfiguration", **fields}, "")
        except ConfigError as error:
            return str(error).splitlines()
        return []

    return messages
