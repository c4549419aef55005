"""Today's metrics under the names and labels of then: labels that did not exist are summed up, events and extension
points are called what they were called."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from kubesched.older.engine.metrics.definitions import MetricOfThen
from kubesched.scheduler.engine.metrics import definitions as today
from kubesched.scheduler.engine.metrics.definitions import MetricDefinition
from kubesched.scheduler.engine.metrics.series import LabelValues, MetricFamily, relabelled

_EXTENSION_POINTS = frozenset(
    {"PreFilter", "PreFilterExtensionAddPod", "PreFilterExtensionRemovePod", "Filter", "PreScore", "Score"}
    | {"ScoreExtensionNormalize", "Reserve", "Unreserve", "Permit", "PreBind", "Bind", "PostBind"}
)
_RENAMED_EXTENSION_POINTS = {"1.17": {"PreScore": "PostFilter"}, "1.18": {}, "1.19": {"PostFilter": "PostFilter"}}
"""What was called PostFilter in 1.17 is PreScore today; preemption became an extension point with 1.19."""

_EVENTS = {
    "UnschedulablePodAdd": "PodAdd",
    "PersistentVolumeAdd": "PvAdd",
    "PersistentVolumeUpdate": "PvUpdate",
    "PersistentVolumeClaimAdd": "PvcAdd",
    "PersistentVolumeClaimUpdate": "PvcUpdate",
    "storage.k8s.io/StorageClassAdd": "StorageClassAdd",
    "storage.k8s.io/CSINodeAdd": "CSINodeAdd",
    "storage.k8s.io/CSINodeUpdate": "CSINodeUpdate",
    "NodeUpdateNodeAllocatable": "NodeAllocatableChange",
    "NodeUpdateNodeLabel": "NodeLabelChange",
    "NodeUpdateNodeTaint": "NodeTaintChange",
    "NodeUpdateNodeCondition": "NodeConditionChange",
}
_KEPT_EVENTS = frozenset(
    {"NodeAdd", "AssignedPodAdd", "AssignedPodUpdate", "AssignedPodDelete"}
    | {"ScheduleAttemptFailure", "BackoffComplete", "UnschedulableTimeout"}
)
_UNKNOWN_EVENT = "Unknown"
_RESULTS: tuple[LabelValues, ...] = (("scheduled",), ("unschedulable",), ("error",))


def as_of_then(
    version: str,
    metrics: Iterable[MetricOfThen],
    found: Mapping[str, MetricFamily],
    own: Mapping[str, MetricFamily],
) -> list[MetricFamily]:
    """`found` are today's metrics by name, `own` those that were measured for then. `strays_total`, ours, stays."""
    shown = [
        _renamed(metric, version, found[metric.source.name])
        if isinstance(metric.source, MetricDefinition)
        else own[metric.name]
        for metric in metrics
    ]
    return [*shown, found[today.STRAYS.name]]


def _renamed(metric: MetricOfThen, version: str, family: MetricFamily) -> MetricFamily:
    definition = metric.definition(version)
    labels = tuple(metric.renamed_labels.get(label, label) for label in family.definition.labels)

    def said(values: LabelValues) -> LabelValues | None:
        """None for what did not exist."""
        told = dict(zip(labels, values, strict=True))
        if "extension_point" in told:
            extension_point = _extension_point(version, told["extension_point"])
            if not extension_point:
                return None
            told["extension_point"] = extension_point
        if "event" in told:
            told["event"] = _event(told["event"])
        if told.get("queue") == "gated":
            told["queue"] = "unschedulable"
        return tuple(told[label] for label in definition.labels)

    shown = replace(relabelled(family, said), definition=definition)
    if definition.labels == ("result",) and shown.values is not None:
        shown = replace(shown, values={**dict.fromkeys(_RESULTS, 0.0), **shown.values})  # were there from the start
    return shown


def _extension_point(version: str, extension_point: str) -> str:
    """Empty for an extension point that did not exist."""
    renamed = _RENAMED_EXTENSION_POINTS[version].get(extension_point)
    return renamed or (extension_point if extension_point in _EXTENSION_POINTS else "")


def _event(event: str) -> str:
    if event in _KEPT_EVENTS:
        return event
    if event.startswith("AssignedPodUpdate"):
        return "AssignedPodUpdate"
    return _EVENTS.get(event, _UNKNOWN_EVENT)
