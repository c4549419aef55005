"""Plays scenarios on an API server with one scheduler, all of them side by side, and says how each ended.

After each step it waits until a pod of no scenario was bound, so that the scheduler has seen the step, and then until
nothing changes any more. There need be no other program than the API server and the scheduler: nodes have no kubelet,
budgets are given their status here, and what was made is taken away again.

Next: `outcomes` for what is compared.
"""

from __future__ import annotations

import asyncio
import signal
import subprocess
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import yaml

from harness.group_comparison.scenarios import (
    CALM,
    DEVICE_CLASS,
    DRIVER,
    PRIORITIES,
    SCENARIO,
    Manifest,
    Scenario,
    Step,
    Version,
    written_for,
)
from kubesched.k8s.client.errors import ApiError
from kubesched.k8s.client.rest import RestClient

QUIET_S = 4.0
"""As long as nothing changes before a step counts as settled: twice the longest backoff."""
LONGEST_S = 45.0
_SEEN_WITHIN_S = 120.0
_LOOK_AGAIN_S = 0.5
_ENDS_WITHIN_S = 20.0

_PLURALS = {
    "Node": "nodes",
    "Pod": "pods",
    "PodGroup": "podgroups",
    "CompositePodGroup": "compositepodgroups",
    "PodDisruptionBudget": "poddisruptionbudgets",
    "ResourceSlice": "resourceslices",
    "ResourceClaim": "resourceclaims",
    "PersistentVolume": "persistentvolumes",
    "PersistentVolumeClaim": "persistentvolumeclaims",
    "DeviceClass": "deviceclasses",
    "PriorityClass": "priorityclasses",
    "Namespace": "namespaces",
}
_OF_CLUSTER = {"Node", "PersistentVolume", "ResourceSlice", "DeviceClass", "PriorityClass", "Namespace"}
_GROUP_VERSIONS = {
    "CompositePodGroup": "scheduling.k8s.io/v1alpha3",
    "PodDisruptionBudget": "policy/v1",
    "PriorityClass": "scheduling.k8s.io/v1",
    "ResourceSlice": "resource.k8s.io/v1",
    "ResourceClaim": "resource.k8s.io/v1",
    "DeviceClass": "resource.k8s.io/v1",
}
_PROBE = "probe"
_WITH_CLAIMS = ("ResourceClaim", "PersistentVolumeClaim")

_encode = msgspec.json.encode


@dataclass(frozen=True, slots=True)
class Scheduler:
    """`command` is what starts it, without its configuration and its gates."""

    name: str
    command: tuple[str, ...]


class Played:
    """All objects of one scenario as they were at the end, and its events."""

    def __init__(self, pods: list[Any], groups: list[Any], nodes: list[Any], events: list[Any], made: set[str]) -> None:
        self.pods = pods
        self.groups = groups
        self.nodes = nodes
        self.events = events
        self.made = made
        """Names of all pods that were created and not deleted by the scenario itself."""


async def play(
    client: RestClient,
    kubeconfig: Path,
    scheduler: Scheduler,
    version: Version,
    gates: Iterable[str],
    scenarios: Sequence[Scenario],
) -> dict[str, Played]:
    """How each ended, by its name."""
    stage = _Stage(client, version, scenarios, str(time.time_ns())[6:14])
    await stage.open()
    try:
        await stage.perform(0)
        async with _running(scheduler, gates, kubeconfig):
            await stage.settle()
            for number in range(1, max(len(one.steps) for one in scenarios)):
                await stage.perform(number)
                await stage.settle()
            return {one.name: await stage.result(one) for one in scenarios}
    finally:
        await stage.close()


@asynccontextmanager
async def _running(scheduler: Scheduler, gates: Iterable[str], kubeconfig: Path) -> AsyncIterator[None]:
    folder = kubeconfig.parent
    config, log = folder / f"{scheduler.name}.yaml", folder / f"{scheduler.name}.log"
    config.write_text(yaml.safe_dump(_configuration(kubeconfig)))
    flags = (f"--config={config}", "--feature-gates=" + ",".join(f"{gate}=true" for gate in gates), "--secure-port=0")
    with log.open("ab") as output:
        process = subprocess.Popen((*scheduler.command, *flags), stdout=output, stderr=output)
    try:
        yield
        if process.poll() is not None:
            raise RuntimeError(f"{scheduler.name} ended: {log} says why")
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            await asyncio.to_thread(process.wait, _ENDS_WITHIN_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _configuration(kubeconfig: Path) -> Manifest:
    """Short backoffs, so that what is retried is retried while somebody looks."""
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": str(kubeconfig), "qps": 1000, "burst": 1000},
        "leaderElection": {"leaderElect": False},
        "podInitialBackoffSeconds": 1,
        "podMaxBackoffSeconds": 2,
    }


class _Stage:
    def __init__(self, client: RestClient, version: Version, scenarios: Sequence[Scenario], run_id: str) -> None:
        self._client = client
        self._version = version
        self._scenarios = scenarios
        self._namespaces = {one.name: f"{one.name}-{run_id}" for one in scenarios}
        self._namespaces[_PROBE] = f"{_PROBE}-{run_id}"
        self._made: dict[str, set[str]] = {one.name: set() for one in scenarios}
        self._n_probes = 0

    async def open(self) -> None:
        for name, value in PRIORITIES.items():
            policy = "Never" if name == CALM else "PreemptLowerPriority"
            manifest = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}}
            await self._create_once({**manifest, "value": value, "preemptionPolicy": policy})
        chosen = {"cel": {"expression": f"device.driver == {DRIVER!r}".replace("'", '"')}}
        await self._create_once({"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass",
                                 "metadata": {"name": DEVICE_CLASS}, "spec": {"selectors": [chosen]}})  # fmt: skip
        for namespace in self._namespaces.values():
            await self._create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
        ready = [{"type": "Ready", "status": "True"}]
        amounts = {"cpu": "100", "memory": "100Gi", "pods": "100"}
        status = {"capacity": amounts, "allocatable": amounts, "conditions": ready}
        await self._create({"apiVersion": "v1", "kind": "Node", "status": status,
                            "metadata": {"name": self._namespaces[_PROBE], "labels": {SCENARIO: _PROBE}}})  # fmt: skip

    async def perform(self, number: int) -> None:
        async with asyncio.TaskGroup() as all_of_them:
            for one in self._scenarios:
                if number < len(one.steps):
                    all_of_them.create_task(self._perform(one.name, one.steps[number]))

    async def _perform(self, name: str, step: Step) -> None:
        """One after the other: their order may matter."""
        namespace = self._namespaces[name]
        for composite in step.dissolved:
            await self._delete(self._path("CompositePodGroup", namespace, composite))
        for pod in step.deleted:
            self._made[name].discard(pod)
            await self._delete(self._path("Pod", namespace, pod))
        for pod in step.opened:
            await self._patch(self._path("Pod", namespace, pod), {"spec": {"schedulingGates": None}})
        for manifest in step.created:
            if manifest["kind"] == "Pod":
                self._made[name].add(manifest["metadata"]["name"])
            if manifest["kind"] == "PersistentVolume":
                claim = {**manifest["spec"]["claimRef"], "namespace": namespace}
                manifest = {**manifest, "spec": {**manifest["spec"], "claimRef": claim}}
            await self._create(written_for(manifest, self._version), namespace)
            if "status" in manifest and manifest["kind"] == "PodDisruptionBudget":
                place = self._path("PodDisruptionBudget", namespace, manifest["metadata"]["name"]) + "/status"
                await self._patch(place, {"status": manifest["status"]})

    async def settle(self) -> None:
        await self._until_probed()
        end_s = time.monotonic() + LONGEST_S
        before, since_s = await self._state(), time.monotonic()
        while time.monotonic() < end_s and time.monotonic() - since_s < QUIET_S:
            await asyncio.sleep(_LOOK_AGAIN_S)
            now = await self._state()
            if now != before:
                before, since_s = now, time.monotonic()

    async def _until_probed(self) -> None:
        """Until a pod that came after all of the step is bound."""
        namespace, self._n_probes = self._namespaces[_PROBE], self._n_probes + 1
        name = f"probe-{self._n_probes}"
        spec = {"nodeSelector": {SCENARIO: _PROBE}, "terminationGracePeriodSeconds": 0,
                "containers": [{"name": "c", "image": "x"}]}  # fmt: skip
        await self._create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}, namespace)
        async with asyncio.timeout(_SEEN_WITHIN_S):
            while not (await self._read(self._path("Pod", namespace, name)))["spec"].get("nodeName"):
                await asyncio.sleep(_LOOK_AGAIN_S)

    async def _state(self) -> Any:
        pods = (await self._read(self._path("Pod"), {"labelSelector": SCENARIO}))["items"]
        groups = (await self._read(self._path("PodGroup"), {"labelSelector": SCENARIO}))["items"]
        return [
            (one["metadata"]["uid"], one.get("spec", {}).get("nodeName"), _settled(one.get("status", {})))
            for one in (*pods, *groups)
        ]

    async def result(self, scenario: Scenario) -> Played:
        namespace = self._namespaces[scenario.name]
        ours = {"labelSelector": f"{SCENARIO}={scenario.name}"}
        pods = (await self._read(self._path("Pod", namespace)))["items"]
        groups = (await self._read(self._path("PodGroup", namespace)))["items"]
        for kind in self._version.composites:
            groups += (await self._read(self._path(kind, namespace)))["items"]
        nodes = (await self._read(self._path("Node"), ours))["items"]
        events = (await self._read(f"/api/v1/namespaces/{namespace}/events"))["items"]
        return Played(pods, groups, nodes, events, self._made[scenario.name])

    async def close(self) -> None:
        """Takes away everything but the namespaces, which nobody would end."""
        for namespace in self._namespaces.values():
            await self._delete(self._path("Pod", namespace))
            await self._delete(self._path("PodGroup", namespace))
            for group in (await self._read(self._path("PodGroup", namespace)))["items"]:
                await self._patch(self._path("PodGroup", namespace, group["metadata"]["name"]),
                                  {"metadata": {"finalizers": None}})  # fmt: skip
            for kind in ("PodDisruptionBudget", *_WITH_CLAIMS, *self._version.composites):
                await self._delete(self._path(kind, namespace))
            for kind in _WITH_CLAIMS:
                await self._let_go(kind, namespace)
        for kind in ("Node", "ResourceSlice", "PersistentVolume"):
            await self._delete(self._path(kind), {"labelSelector": SCENARIO})
        await self._let_go("PersistentVolume")

    async def _let_go(self, kind: str, namespace: str = "") -> None:
        """What was deleted goes: no controller is there that would take its finalizers away."""
        for item in (await self._read(self._path(kind, namespace), {"labelSelector": SCENARIO}))["items"]:
            place = self._path(kind, namespace, item["metadata"]["name"])
            await self._patch(place, {"metadata": {"finalizers": None}})

    def _path(self, kind: str, namespace: str = "", name: str = "") -> str:
        """Without a namespace, of all."""
        versions = {"PodGroup": f"scheduling.k8s.io/{self._version.groups}", **_GROUP_VERSIONS}
        root = f"/apis/{versions[kind]}" if kind in versions else "/api/v1"
        home = f"/namespaces/{namespace}" if namespace and kind not in _OF_CLUSTER else ""
        return f"{root}{home}/{_PLURALS[kind]}" + (f"/{name}" if name else "")

    # -- requests ------------------------------------------------------------------------------------------------------

    async def _read(self, path: str, params: dict[str, str] | None = None) -> Any:
        return msgspec.json.decode(await self._client.request("GET", path, params=params))

    async def _create(self, manifest: Manifest, namespace: str = "") -> None:
        path = self._path(manifest["kind"], namespace)
        await self._client.request("POST", path, body=_encode(manifest))

    async def _create_once(self, manifest: Manifest) -> None:
        try:
            await self._create(manifest)
        except ApiError as problem:
            if not problem.is_already_exists:
                raise

    async def _patch(self, path: str, change: Manifest) -> None:
        await self._client.request("PATCH", path, body=_encode(change), content_type="application/merge-patch+json")

    async def _delete(self, path: str, params: dict[str, str] | None = None) -> None:
        try:
            await self._client.request("DELETE", path, params=params)
        except ApiError as problem:
            if not problem.is_not_found:
                raise


def _settled(status: dict[str, Any]) -> Any:
    """Without the times, which change at every attempt."""
    return [(one["type"], one["status"], one.get("reason"), one.get("message")) for one in status.get("conditions", [])]
