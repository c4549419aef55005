"""What each container of a hollow node does, and where it is: it starts, ends, waits in back-off and starts again.

The annotation `kubesched.dev/run.<container>` says it (`sleep 5; exit 1`), `kubesched.dev/run` for all containers but
init containers; without them its own command, where that is simple enough to tell (`little_shell`). A container of
which nobody knows runs on, and an init container is done at once. Decided when it starts, and remembered until the pod
is gone. Pods are read with the parts of a spec that say how containers start, run and stop (`HollowPod`).

A container is moved on to the present by pure rules on the status that was reported last: a node that is taken up again
goes on where it was.

Next: `pod_play`, which plays the containers of a pod together.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableSet
from dataclasses import dataclass
from hashlib import blake2b

from msgspec.structs import replace

from kubesched.k8s.model.core import Container, ContainerRestartRule, PodSpec
from kubesched.k8s.model.meta import KubeStruct, ObjectMeta
from kubesched.k8s.model.reported_pods import (
    ContainerState,
    ContainerStateRunning,
    ContainerStateTerminated,
    ContainerStateWaiting,
    ReportedContainerStatus,
    ReportedPod,
)
from kubesched.k8s.model.times import InstantError, parse_instant, print_instant
from kubesched.k8s.workloads.pod_states import AnnotationError, seconds_of
from kubesched.playground.hollow_nodes.little_shell import Ending, NotUnderstoodError, ending_of, script_ending

RUN_KEY = "kubesched.dev/run"
READY_AFTER_KEY = "kubesched.dev/ready-after"

_MOST_FILES = 20_000
_REMEMBERED_RUNS = 4
_RUNS_ON = Ending(None)
_DONE_AT_ONCE = Ending(0.0, 0)
_BARE_SHELLS = frozenset({"alpine", "busybox"})
_ABSENT_TAGS = frozenset({"nonexistent", "non-existent", "does-not-exist", "404"})


@dataclass(frozen=True, slots=True)
class ContainerRun:
    """One start of a container. `attempt` counts from 0."""

    attempt: int
    started_s: float
    ending: Ending

    @property
    def ends_at_s(self) -> float | None:
        return None if self.ending.after_s is None else self.started_s + self.ending.after_s


class RunBook:
    """The runs of all containers that are played, by pod and name, and the files that they have touched."""

    def __init__(self) -> None:
        self._runs: dict[str, dict[str, dict[int, ContainerRun]]] = {}
        self._files: dict[str, None] = {}

    def run(self, pod: HollowPod, container: HollowContainer, attempt: int, started_s: float) -> ContainerRun:
        """The run of this number; begun now, if it is not known. Some runs before it are remembered: a status that was
        read may be older than what was written."""
        runs = self._runs.setdefault(pod.metadata.uid, {}).setdefault(container.name, {})
        known = runs.get(attempt)
        if known is None:
            known = runs[attempt] = ContainerRun(attempt, started_s, self._ending(pod, container, attempt))
            runs.pop(attempt - _REMEMBERED_RUNS, None)
        return known

    def knows(self, pod: HollowPod, container: HollowContainer, attempt: int) -> bool:
        """Whether this run has begun already, though the status may not say so yet."""
        return attempt in self._runs.get(pod.metadata.uid, {}).get(container.name, {})

    def forget(self, uid: str) -> None:
        """The pod is gone, and what it has written into volumes of its own with it."""
        if self._runs.pop(uid, None) is not None:
            for key in [key for key in self._files if key.startswith(f"{uid}/")]:
                del self._files[key]

    def _ending(self, pod: HollowPod, container: HollowContainer, attempt: int) -> Ending:
        is_init = container in (pod.spec.init_containers or ())
        is_sidecar = is_init and container.restart_policy == "Always"
        files = MountedFiles(self._files, pod, container, attempt)
        variables = _variables(pod, container, attempt)
        script = pod.annotations.get(f"{RUN_KEY}.{container.name}")
        if script is None and not is_init:
            script = pod.annotations.get(RUN_KEY)
        argv = (*(container.command or ()), *(container.args or ())) or _own_command(container)
        try:
            found = ending_of(argv, variables, files) if script is None else script_ending(script, variables, files)
        except NotUnderstoodError:
            return _DONE_AT_ONCE if is_init and not is_sidecar else _RUNS_ON
        while len(self._files) > _MOST_FILES:
            del self._files[next(iter(self._files))]
        return found


class MountedFiles(MutableSet[str]):
    """The files that a container sees: those of a hostPath stay with the node, of other volumes with the pod."""

    def __init__(self, kept: dict[str, None], pod: HollowPod, container: HollowContainer, attempt: int) -> None:
        self._kept = kept
        uid, node = pod.metadata.uid, pod.spec.node_name
        host_paths = {known.name: known.host_path.path for known in pod.spec.volumes or () if known.host_path}
        self._own = f"{uid}/{container.name}/{attempt}:"
        self._roots: list[tuple[str, str]] = []
        for mount in sorted(container.volume_mounts or (), key=lambda one: len(one.mount_path), reverse=True):
            path = host_paths.get(mount.name)
            root = f"{uid}/{mount.name}:" if path is None else f"node {node}:{path}"
            self._roots.append((mount.mount_path.rstrip("/") + "/", root))

    def _key(self, path: str) -> str:
        for prefix, root in self._roots:
            if path.startswith(prefix):
                return f"{root}/{path[len(prefix) :]}"
        return self._own + path

    def __contains__(self, path: object) -> bool:
        return isinstance(path, str) and self._key(path) in self._kept

    def __iter__(self) -> Iterator[str]:
        return iter(self._kept)

    def __len__(self) -> int:
        return len(self._kept)

    def add(self, value: str) -> None:
        self._kept[self._key(value)] = None

    def discard(self, value: str) -> None:
        self._kept.pop(self._key(value), None)


def _own_command(container: HollowContainer) -> tuple[str, ...]:
    """Images that hold a shell and little else start it when they are not told what to do."""
    name = container.image.rpartition("/")[2].partition(":")[0].partition("@")[0]
    return ("sh",) if name in _BARE_SHELLS and not container.stdin else ()


def ready_after_s(pod: HollowPod, container: HollowContainer) -> float:
    """From its start; a readiness probe succeeds as soon as it is asked."""
    for key in (f"{READY_AFTER_KEY}.{container.name}", READY_AFTER_KEY):
        try:
            found = seconds_of(pod.metadata, key)
        except AnnotationError:
            continue
        if found is not None:
            return found
    probe = container.readiness_probe
    return 0.0 if probe is None else float(probe.initial_delay_seconds)


def pre_stop_s(pod: HollowPod) -> float | None:
    """How long the hooks take that run before containers are asked to stop; None if nobody knows."""
    longest = 0.0
    for container in pod.spec.containers:
        hook = None if container.lifecycle is None else container.lifecycle.pre_stop
        if hook is None:
            continue
        if hook.sleep is not None:
            longest = max(longest, hook.sleep.seconds)
        elif hook.exec is not None:
            try:
                after_s = ending_of(hook.exec.command or (), _variables(pod, container, 0), set()).after_s
            except NotUnderstoodError:
                after_s = 0.0
            if after_s is None:
                return None
            longest = max(longest, after_s)
    return longest


def cannot_be_pulled(image: str) -> bool:
    """An image whose name says that there is none: a tag such as `nonexistent`, or a registry called `invalid`."""
    registry, _, rest = image.partition("/")
    tag = image.rpartition("/")[2].partition(":")[2]
    return tag in _ABSENT_TAGS or (bool(rest) and "invalid" in registry.split("."))


def _variables(pod: HollowPod, container: HollowContainer, attempt: int) -> dict[str, str]:
    drawn = blake2b(f"{pod.metadata.uid}/{container.name}/{attempt}".encode(), digest_size=2).digest()
    known = {
        "HOSTNAME": pod.name,
        "RANDOM": str(int.from_bytes(drawn) % 32768),
        "RESTART_COUNT": str(attempt),
    }
    return known | {one.name: _value(pod, one) for one in container.env or ()}


def _value(pod: HollowPod, given: EnvValue) -> str:
    reference = None if given.value_from is None else given.value_from.field_ref
    if reference is None:
        return given.value
    path = reference.field_path
    plain = {
        "metadata.name": pod.name,
        "metadata.namespace": pod.namespace,
        "metadata.uid": pod.metadata.uid,
        "spec.nodeName": pod.spec.node_name,
    }
    for prefix, values in (("metadata.annotations['", pod.annotations), ("metadata.labels['", pod.labels)):
        if path.startswith(prefix):
            return values.get(path[len(prefix) : -2], "")
    return plain.get(path, "")


FIRST_BACKOFF_S = 10.0
LONGEST_BACKOFF_S = 300.0
CRASH_LOOP = "CrashLoopBackOff"


@dataclass(frozen=True, slots=True)
class Moved:
    """A container at the present, when it moves next, and the events about it."""

    status: ReportedContainerStatus
    at_s: float | None = None
    n_started: int = 0
    has_backed_off: bool = False


def move(
    pod: HollowPod, container: HollowContainer, known: ReportedContainerStatus, book: RunBook, now_s: float
) -> Moved:
    """To be called for containers that may run now."""
    status, n_started, was_waiting = known, 0, _is_crash_looping(known)
    while True:
        state = status.state or ContainerState()
        if state.running is not None:
            run = book.run(pod, container, status.restart_count, instant(state.running.started_at, now_s))
            end_s = run.ends_at_s
            if end_s is None or end_s > now_s:
                return Moved(status, end_s, n_started)
            status = ended(status, run.ending.exit_code, run.started_s, end_s)
            continue
        last = state.terminated or (status.last_state or ContainerState()).terminated
        if last is None:
            if cannot_be_pulled(container.image):
                return _unpulled(status, container, now_s)
            n_started += not book.knows(pod, container, 0)
            status = _started(status, pod, container, 0, book, now_s)
            continue
        if not restarts(pod, container, last.exit_code):
            return Moved(status, None, n_started)
        ready_s = instant(last.finished_at, now_s) + backoff_s(status.restart_count)
        if ready_s > now_s:
            return Moved(_backing_off(status, pod, container, last), ready_s, n_started, not was_waiting)
        n_started += not book.knows(pod, container, status.restart_count + 1)
        status = _started(status, pod, container, status.restart_count + 1, book, now_s)


def restarts(pod: HollowPod, container: HollowContainer, exit_code: int) -> bool:
    """By the rules of the container, by its own policy, by that of the pod. An ephemeral one has one go."""
    if container in (pod.spec.ephemeral_containers or ()):
        return False
    for rule in container.restart_policy_rules or ():
        asked = rule.exit_codes
        if asked is not None and (exit_code in (asked.values or ())) == (asked.operator == "In"):
            return rule.action == "Restart"
    policy = container.restart_policy or pod.spec.restart_policy or "Always"
    if container in (pod.spec.init_containers or ()) and container.restart_policy is None:
        return exit_code != 0 and policy != "Never"
    return policy == "Always" or (policy == "OnFailure" and exit_code != 0)


def backoff_s(n_restarts: int) -> float:
    """After the first end it is started again at once, then later and later."""
    return 0.0 if n_restarts == 0 else min(FIRST_BACKOFF_S * 2.0 ** min(n_restarts - 1, 20), LONGEST_BACKOFF_S)


def waiting(container: HollowContainer, reason: str, message: str = "") -> ReportedContainerStatus:
    """Not started yet."""
    state = ContainerState(waiting=ContainerStateWaiting(reason, message))
    return ReportedContainerStatus(name=container.name, image=container.image, state=state)


def ended(status: ReportedContainerStatus, exit_code: int, started_s: float, end_s: float) -> ReportedContainerStatus:
    reason = "Completed" if exit_code == 0 else "Error"
    done = ContainerStateTerminated(exit_code, reason, print_instant(started_s), print_instant(end_s))
    return replace(status, ready=False, state=ContainerState(terminated=done))


def instant(text: str | None, otherwise_s: float) -> float:
    try:
        return parse_instant(text) if text else otherwise_s
    except InstantError:
        return otherwise_s


def _started(
    status: ReportedContainerStatus,
    pod: HollowPod,
    container: HollowContainer,
    attempt: int,
    book: RunBook,
    now_s: float,
) -> ReportedContainerStatus:
    run = book.run(pod, container, attempt, now_s)
    running = ContainerState(running=ContainerStateRunning(print_instant(run.started_s)))
    before = status.state if status.state is not None and status.state.terminated is not None else status.last_state
    return replace(status, image=container.image, restart_count=attempt, state=running, last_state=before, ready=False)


def _backing_off(
    status: ReportedContainerStatus, pod: HollowPod, container: HollowContainer, last: ContainerStateTerminated
) -> ReportedContainerStatus:
    for_s = int(backoff_s(status.restart_count))
    message = (
        f"back-off {for_s // 60}m{for_s % 60}s" if for_s >= 60 else f"back-off {for_s}s"
    ) + f" restarting failed container={container.name} pod={pod.name}_{pod.namespace}({pod.metadata.uid})"
    state = ContainerState(waiting=ContainerStateWaiting(CRASH_LOOP, message))
    return replace(status, ready=False, state=state, last_state=ContainerState(terminated=last))


def _unpulled(status: ReportedContainerStatus, container: HollowContainer, now_s: float) -> Moved:
    """An error first, and then it is said to be tried again for as long as anybody looks."""
    known = (status.state or ContainerState()).waiting
    if known is not None and known.reason in ("ErrImagePull", "ImagePullBackOff"):
        message = f'Back-off pulling image "{container.image}"'
        return Moved(waiting(container, "ImagePullBackOff", message))
    message = f'failed to pull image "{container.image}": not found'
    return Moved(waiting(container, "ErrImagePull", message), now_s + FIRST_BACKOFF_S, has_backed_off=True)


def _is_crash_looping(status: ReportedContainerStatus) -> bool:
    state = status.state
    return state is not None and state.waiting is not None and state.waiting.reason == CRASH_LOOP


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
