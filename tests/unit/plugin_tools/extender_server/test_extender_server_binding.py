"""Bind: the plugins' own, or through the API server; a bound pod counts at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from served_plugins import AtMostTwo, Binder, OnlyFirst, Tiers, cluster_of, profiles_of

from kubesched.framework import OK, CycleState, PodInfo, Status
from kubesched.framework.effects import BindPod, Done, Failed, PatchPodStatus
from kubesched.framework.extension_points import Steps
from kubesched.k8s.model import manifests
from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.meta import PodKey
from kubesched.plugin_tools.extender_server.messages import BindRequest
from kubesched.plugin_tools.extender_server.served_cluster import ServedCluster
from kubesched.plugin_tools.extender_server.verdicts import CallError, PluginBinder, PluginVerdictService
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.engine.plugin_call import PluginError
from kubesched.testing import make

REQUEST = BindRequest("p", "default", "uid-default-p", "a")
BINDING = BindPod(PodKey("default/p"), "uid-default-p", "a")


class Journal:
    """Carries out nothing, and remembers what was asked for and which pods were read."""

    def __init__(self, answer: Callable[[object], object] = lambda _action: Done(), pods: tuple[Pod, ...] = ()) -> None:
        self._answer = answer
        self._pods = {pod.pod_key: pod for pod in pods}
        self.actions: list[object] = []

    async def carry_out(self, action: object) -> object:
        self.actions.append(action)
        return self._answer(action)

    async def read_pod(self, key: PodKey) -> Pod | None:
        return self._pods.get(key)


def waiting() -> Cluster:
    return cluster_of(make.node("a", labels={"tier": "gold"}), make.pod("p"))


def bind(cluster: Cluster, journal: Journal, *plugins: type, request: BindRequest = REQUEST) -> None:
    served = ServedCluster(cluster, is_followed=True)
    service = PluginVerdictService(served, profiles_of(cluster, *plugins))
    binder = PluginBinder(served, service, journal.carry_out, journal.read_pod)
    asyncio.run(binder.bind(request))


def test_a_pod_that_no_plugin_binds_is_bound_through_the_api_server() -> None:
    cluster, journal = waiting(), Journal()
    bind(cluster, journal, Tiers)
    assert journal.actions == [BINDING]


def test_a_bound_pod_counts_on_its_node_before_the_watch_tells_of_it() -> None:
    cluster = waiting()
    bind(cluster, Journal(), Tiers)
    assert [info.name for info in cluster.table.pods.on(0)] == ["p"]
    cluster.put(manifests.from_dicts([make.pod("p", on="a")]).objects[0])
    assert cluster.n_assumed == 0
    assert [info.name for info in cluster.table.pods.on(0)] == ["p"]


def test_a_binding_that_fails_is_told_and_does_not_count() -> None:
    cluster = waiting()
    with pytest.raises(CallError, match="pods is forbidden"):
        bind(cluster, Journal(lambda _action: Failed("pods is forbidden")), AtMostTwo)
    assert not cluster.table.pods.on(0)
    assert cluster.n_assumed == 0


def test_a_pod_that_the_watch_has_not_brought_yet_is_read() -> None:
    pod = manifests.from_dicts([make.pod("p")]).objects[0]
    assert isinstance(pod, Pod)
    journal = Journal(pods=(pod,))
    bind(cluster_of(make.node("a", labels={"tier": "gold"})), journal, Tiers)
    assert journal.actions == [BINDING]


@pytest.mark.parametrize(
    "request_", [BindRequest("q", "default", "u", "a"), BindRequest("p", "default", "older", "a")], ids=["name", "uid"]
)
def test_a_pod_that_does_not_exist_is_not_bound(request_: BindRequest) -> None:
    journal = Journal()
    with pytest.raises(CallError, match="not found"):
        bind(waiting(), journal, Tiers, request=request_)
    assert journal.actions == []


@pytest.mark.parametrize("plugin", [AtMostTwo, OnlyFirst], ids=["filter", "pre_filter"])
def test_a_node_that_the_plugins_no_longer_accept_is_refused(plugin: type) -> None:
    """kube-scheduler asks about the next pod before the one before it is bound."""
    cluster, journal = waiting(), Journal()
    for i in range(2):
        cluster.put(manifests.from_dicts([make.pod(f"other{i}", on="a")]).objects[0])
    with pytest.raises(CallError, match='node "a" was taken meanwhile: node'):
        bind(cluster, journal, plugin)
    assert journal.actions == []
    assert cluster.n_assumed == 0


# -- plugins that bind -------------------------------------------------------------------------------------------------


class Told:
    name = "Told"
    seen: list[str]

    def pre_bind_pre_flight(self, cycle: CycleState, pod: PodInfo, node_name: str) -> Status:
        return OK

    def pre_bind(self, cycle: CycleState, pod: PodInfo, node_name: str) -> Steps:
        self.seen.append(f"before {node_name}")
        yield PatchPodStatus(pod.key, pod.uid)
        return OK

    def post_bind(self, cycle: CycleState, pod: PodInfo, node_name: str) -> None:
        self.seen.append(f"after {node_name}")


def wishing(wish: str) -> Cluster:
    return cluster_of(make.node("a"), make.pod("p", labels={"wish": wish}))


@pytest.mark.parametrize("wish", ["", "leave"], ids=["bound by the plugin", "left to the API server"])
def test_plugins_that_bind_go_first(wish: str) -> None:
    journal = Journal()
    bind(wishing(wish), journal, Binder)
    assert journal.actions == [BINDING]


@pytest.mark.parametrize(
    ("wish", "error", "text"),
    [
        pytest.param("refuse", CallError, r"Binder.*not on my watch", id="refused"),
        pytest.param("break", PluginError, r"Binder.*no such rack", id="broken"),
    ],
)
def test_a_plugin_that_does_not_bind_is_named(wish: str, error: type[Exception], text: str) -> None:
    cluster, journal = wishing(wish), Journal()
    with pytest.raises(error, match=text):
        bind(cluster, journal, Binder)
    assert journal.actions == []
    assert not cluster.table.pods.on(0)


def test_pre_bind_and_post_bind_stand_around_the_binding() -> None:
    Told.seen = []
    journal = Journal()
    bind(waiting(), journal, Told)
    assert Told.seen == ["before a", "after a"]
    assert [type(action) for action in journal.actions] == [PatchPodStatus, PatchPodStatus, BindPod]
