"""Replica sets and stateful sets: what the default spread constraints take their selector from."""

from __future__ import annotations

from kubesched.model.meta import KubeObject, KubeStruct, LabelSelector


class ReplicaSetSpec(KubeStruct, frozen=True):
    selector: LabelSelector | None = None


class ReplicaSet(KubeObject, frozen=True):
    spec: ReplicaSetSpec = ReplicaSetSpec()


class StatefulSetSpec(KubeStruct, frozen=True):
    selector: LabelSelector | None = None


class StatefulSet(KubeObject, frozen=True):
    spec: StatefulSetSpec = StatefulSetSpec()
