"""Pods with what kubelets report of them: states of containers, exit codes, and when conditions changed.

Scheduling looks at none of it, so `core` leaves it out; controllers and hollow nodes read pods in this form.
"""

from __future__ import annotations

from kubesched.k8s.model.core import ContainerStatus, Pod, PodCondition, PodStatus
from kubesched.k8s.model.meta import KubeStruct


class ContainerStateWaiting(KubeStruct, frozen=True):
    reason: str = ""
    message: str = ""


class ContainerStateRunning(KubeStruct, frozen=True):
    started_at: str | None = None


class ContainerStateTerminated(KubeStruct, frozen=True):
    exit_code: int = 0
    reason: str = ""
    started_at: str | None = None
    finished_at: str | None = None


class ContainerState(KubeStruct, frozen=True):
    waiting: ContainerStateWaiting | None = None
    running: ContainerStateRunning | None = None
    terminated: ContainerStateTerminated | None = None


class ReportedContainerStatus(ContainerStatus, frozen=True):
    image: str = ""
    ready: bool = False
    restart_count: int = 0
    state: ContainerState | None = None
    last_state: ContainerState | None = None


class ReportedCondition(PodCondition, frozen=True):
    last_transition_time: str | None = None


class ReportedPodStatus(PodStatus, frozen=True):
    reason: str = ""
    conditions: tuple[ReportedCondition, ...] | None = None
    container_statuses: tuple[ReportedContainerStatus, ...] | None = None
    init_container_statuses: tuple[ReportedContainerStatus, ...] | None = None
    ephemeral_container_statuses: tuple[ReportedContainerStatus, ...] | None = None


class ReportedPod(Pod, frozen=True):
    status: ReportedPodStatus = ReportedPodStatus()
