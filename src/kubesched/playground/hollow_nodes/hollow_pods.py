"""Pods as hollow nodes read them: with the parts of a spec that say how containers start, run and stop."""

from __future__ import annotations

from kubesched.k8s.model.core import Container, ContainerRestartRule, PodSpec
from kubesched.k8s.model.meta import KubeStruct, ObjectMeta
from kubesched.k8s.model.reported_pods import ReportedPod


class SleepAction(KubeStruct, frozen=True):
    seconds: int = 0


class ExecAction(KubeStruct, frozen=True):
    command: tuple[str, ...] | None = None


class LifecycleHandler(KubeStruct, frozen=True):
    sleep: SleepAction | None = None
    exec: ExecAction | None = None


class Lifecycle(KubeStruct, frozen=True):
    pre_stop: LifecycleHandler | None = None


class Probe(KubeStruct, frozen=True):
    initial_delay_seconds: int = 0


class FieldRef(KubeStruct, frozen=True):
    field_path: str = ""


class ValueSource(KubeStruct, frozen=True):
    field_ref: FieldRef | None = None


class EnvValue(KubeStruct, frozen=True):
    name: str = ""
    value: str = ""
    value_from: ValueSource | None = None


class VolumeMount(KubeStruct, frozen=True):
    name: str = ""
    mount_path: str = ""


class ExitCodes(KubeStruct, frozen=True):
    operator: str = "In"
    values: tuple[int, ...] | None = None


class HollowRestartRule(ContainerRestartRule, frozen=True):
    exit_codes: ExitCodes | None = None


class HollowContainer(Container, frozen=True):
    restart_policy_rules: tuple[HollowRestartRule, ...] | None = None
    command: tuple[str, ...] | None = None
    args: tuple[str, ...] | None = None
    stdin: bool = False
    env: tuple[EnvValue, ...] | None = None  # type: ignore[assignment]
    volume_mounts: tuple[VolumeMount, ...] | None = None
    lifecycle: Lifecycle | None = None
    readiness_probe: Probe | None = None


class HostPath(KubeStruct, frozen=True):
    path: str = ""


class HollowVolume(KubeStruct, frozen=True):
    name: str = ""
    host_path: HostPath | None = None


class ReadinessGate(KubeStruct, frozen=True):
    condition_type: str = ""


class HollowPodSpec(PodSpec, frozen=True):
    containers: tuple[HollowContainer, ...] = ()
    init_containers: tuple[HollowContainer, ...] | None = None
    ephemeral_containers: tuple[HollowContainer, ...] | None = None
    volumes: tuple[HollowVolume, ...] | None = None  # type: ignore[assignment]
    readiness_gates: tuple[ReadinessGate, ...] | None = None
    active_deadline_seconds: int | None = None


class HollowMeta(ObjectMeta, frozen=True):
    deletion_grace_period_seconds: int | None = None


class HollowPod(ReportedPod, frozen=True):
    metadata: HollowMeta = HollowMeta()
    spec: HollowPodSpec = HollowPodSpec()

    @property
    def annotations(self) -> dict[str, str]:
        return self.metadata.annotations or {}
