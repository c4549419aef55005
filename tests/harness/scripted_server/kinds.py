"""Which kinds the scripted server has, and where. A test may take some away, as on an older server, or add its own."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ServedKind:
    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def resource(self) -> str:
        """`pods`, or with a group `leases.coordination.k8s.io`: also the key of its objects, whatever the version."""
        return f"{self.plural}.{self.group}" if self.group else self.plural


_NAMESPACED = {
    ("", "v1"): {
        "pods": "Pod",
        "services": "Service",
        "replicationcontrollers": "ReplicationController",
        "persistentvolumeclaims": "PersistentVolumeClaim",
        "events": "Event",
        "configmaps": "ConfigMap",
        "secrets": "Secret",
        "serviceaccounts": "ServiceAccount",
        "resourcequotas": "ResourceQuota",
    },
    ("apps", "v1"): {
        "replicasets": "ReplicaSet",
        "statefulsets": "StatefulSet",
        "controllerrevisions": "ControllerRevision",
        "deployments": "Deployment",
        "daemonsets": "DaemonSet",
    },
    ("batch", "v1"): {"jobs": "Job", "cronjobs": "CronJob"},
    ("coordination.k8s.io", "v1"): {"leases": "Lease"},
    ("events.k8s.io", "v1"): {"events": "Event"},
    ("policy", "v1"): {"poddisruptionbudgets": "PodDisruptionBudget"},
    ("resource.k8s.io", "v1"): {
        "resourceclaims": "ResourceClaim",
        "resourceclaimtemplates": "ResourceClaimTemplate",
    },
    ("storage.k8s.io", "v1"): {"csistoragecapacities": "CSIStorageCapacity"},
}

_CLUSTER_WIDE = {
    ("", "v1"): {"nodes": "Node", "namespaces": "Namespace", "persistentvolumes": "PersistentVolume"},
    ("apiextensions.k8s.io", "v1"): {"customresourcedefinitions": "CustomResourceDefinition"},
    ("resource.k8s.io", "v1"): {"resourceslices": "ResourceSlice", "deviceclasses": "DeviceClass"},
    ("resource.k8s.io", "v1beta2"): {"devicetaintrules": "DeviceTaintRule"},
    ("scheduling.k8s.io", "v1"): {"priorityclasses": "PriorityClass"},
    ("storage.k8s.io", "v1"): {
        "storageclasses": "StorageClass",
        "csinodes": "CSINode",
        "csidrivers": "CSIDriver",
        "volumeattachments": "VolumeAttachment",
        "volumeattributesclasses": "VolumeAttributesClass",
    },
}

SERVED_KINDS: tuple[ServedKind, ...] = tuple(
    ServedKind(group, version, plural, kind, namespaced)
    for namespaced, table in ((True, _NAMESPACED), (False, _CLUSTER_WIDE))
    for (group, version), kinds in table.items()
    for plural, kind in kinds.items()
)
"""What a new server has."""
