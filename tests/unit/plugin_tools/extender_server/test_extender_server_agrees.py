"""A plugin decides the same whether a scheduler runs it, or asks the extender server that does."""

from __future__ import annotations

from random import Random

import pytest
from served_plugins import Tiers, profiles_of

from kubesched.framework.effects import CallExtender
from kubesched.k8s.model import manifests
from kubesched.k8s.model.meta import KubeObject, PodKey
from kubesched.plugin_tools.extender_server import messages
from kubesched.plugin_tools.extender_server.messages import NodeReader
from kubesched.plugin_tools.extender_server.outside_profiles import Endpoint, configuration_yaml, extender_configuration
from kubesched.plugin_tools.extender_server.served_cluster import ServedCluster
from kubesched.plugin_tools.extender_server.verdicts import PluginVerdictService
from kubesched.scheduler.build import build_loop
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.config import load
from kubesched.scheduler.engine.score import ByName
from kubesched.scheduler.plugin_loading import assemble, plugins_from_classes
from kubesched.testing import make
from kubesched.testing.world import World

HEAD = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}


def nodes(random: Random) -> list[KubeObject]:
    tiers = [{"tier": tier} if tier else {} for tier in ("gold", "silver", "bronze", "")]
    made = [make.node(f"n{i}", cpu=random.randint(1, 4), labels=random.choice(tiers)) for i in range(9)]
    return manifests.from_dicts(made).objects


def pods(random: Random, name: str, count: int, priority: int) -> list[KubeObject]:
    made = [make.pod(f"{name}{i}", cpu=f"{random.choice((100, 900, 1500))}m", priority=priority) for i in range(count)]
    return manifests.from_dicts(made).objects


def with_the_plugins(*plugins: type) -> World:
    built = assemble(load(HEAD, "test"), given=plugins_from_classes(plugins))
    return World(build_loop(built.config, ByName(), registry=built.registry))


class ExtenderWorld(World):
    """A scheduler without the plugins, configured as the extender server says, and that server over its cluster."""

    def __init__(self, *plugins: type, names_only: bool) -> None:
        profiles = profiles_of(Cluster(), *plugins)
        extender = extender_configuration(profiles, Endpoint("http://there"), is_followed=True, binds=False)
        text = configuration_yaml(extender, list(profiles.by_name))
        if not names_only:
            text = text.replace("nodeCacheCapable: true", "nodeCacheCapable: false")
        super().__init__(build_loop(load(text, "printed"), ByName()))
        cluster = self.loop.cluster
        self._service = PluginVerdictService(ServedCluster(cluster, is_followed=True), profiles_of(cluster, *plugins))
        self._reader = NodeReader()

    def carry_out(self, action: object) -> object:
        return self._answer(action) if isinstance(action, CallExtender) else super().carry_out(action)

    def _answer(self, call: CallExtender) -> bytes:
        service = self._service
        if call.verb == "preempt":
            return messages.preempt_answer(service.preempt(messages.read_preempt_request(call.body)))
        request = messages.read_nodes_request(call.body, self._reader)
        if call.verb == "filter":
            return messages.filter_answer(request, service.filter(request))
        return messages.prioritize_answer(request.node_names, service.prioritize(request))


def outcome(world: World, seed: int) -> tuple[dict[PodKey, str], list[PodKey]]:
    """Where pods went, and who was evicted: first come those that may be evicted, more than there is room for."""
    random = Random(seed)
    world.add(*nodes(random), *pods(random, "low", 20, 0))
    world.run(for_s=60.0)
    world.add(*pods(random, "high", 4, 10))
    world.run(for_s=60.0)
    return world.bound, world.evicted


@pytest.mark.parametrize("names_only", [True, False], ids=["names of nodes", "whole nodes"])
@pytest.mark.parametrize("seed", range(6))
def test_pods_go_where_they_would_with_the_plugins_built_in(seed: int, names_only: bool) -> None:
    placed, evicted = expected = outcome(with_the_plugins(Tiers), seed)
    assert outcome(ExtenderWorld(Tiers, names_only=names_only), seed) == expected
    assert placed and evicted
