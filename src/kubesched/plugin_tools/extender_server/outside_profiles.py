"""Which plugins the extender server asks, and what kube-scheduler is told to ask it.

Asked are those that are not in-tree, as the configuration enables them. kube-scheduler runs the in-tree plugins itself,
before it calls; asking them again would count them twice. So each profile is cut down to the plugins from outside.
Binding is the exception: DefaultBinder binds what no plugin takes.

The part of a KubeSchedulerConfiguration that makes a stock kube-scheduler call here names the verbs that these plugins
have an answer to, no others: a call that changes nothing costs every pod time.

Next: `verdicts`, which asks them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import msgspec

from kubesched.framework.handle import Registry
from kubesched.plugin_tools.extender_server.server import with_token
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.config import (
    Duration,
    ExtenderConfiguration,
    ExtenderTLSConfig,
    KubeSchedulerConfiguration,
    ResolvedPlugin,
    ResolvedProfile,
    resolve_profiles,
    to_yaml,
)
from kubesched.scheduler.config.configuration import plain
from kubesched.scheduler.config.plugin_args import API_VERSION
from kubesched.scheduler.engine.handle import EngineHandle
from kubesched.scheduler.engine.profile import Profile, build_profile
from kubesched.scheduler.engine.score import Seeded
from kubesched.scheduler.plugins import registry as in_tree
from kubesched.scheduler.plugins.default_binder import DefaultBinder

FILTER_POINTS = ("preFilter", "filter")
SCORE_POINTS = ("preScore", "score")
BIND_POINTS = ("preBind", "bind", "postBind")
_SERVED_POINTS = frozenset((*FILTER_POINTS, *SCORE_POINTS, *BIND_POINTS))


class NoPluginsError(ValueError):
    """There is nothing to serve."""


@dataclass(frozen=True, slots=True)
class OutsideProfiles:
    """Profiles by scheduler name, and what follows from them for kube-scheduler's configuration."""

    by_name: Mapping[str, Profile]
    score_weight: int
    """The most that score plugins of one profile weigh together: the extender's own weight."""
    filters: bool
    scores: bool
    binds: bool
    unserved: Mapping[str, tuple[str, ...]]
    """By plugin, the extension points it has that kube-scheduler does not ask extenders about."""

    def profile_of(self, scheduler_name: str) -> Profile | None:
        """That of the scheduler's name; a profile that is the only one is for all."""
        if len(self.by_name) == 1:
            return next(iter(self.by_name.values()))
        return self.by_name.get(scheduler_name)


def build_outside_profiles(
    cluster: Cluster,
    config: KubeSchedulerConfiguration,
    registry: Registry,
    outside: Collection[str],
    source: str = "",
) -> OutsideProfiles:
    """`registry` has the in-tree plugins too; `outside` are the names of the others. Raises `ConfigError`, and
    `NoPluginsError` if none of them is enabled."""
    resolved = [
        _cut_down(profile, outside) for profile in resolve_profiles(config, in_tree.capabilities(registry), source)
    ]
    points = {point: _names_at(resolved, point) & set(outside) for point in resolved[0].points}
    if not any(points.values()):
        raise NoPluginsError("no plugin of your own is enabled: give --plugin FILE, or enable one in --config")
    profiles = {profile.scheduler_name: _build(cluster, profile, registry) for profile in resolved}
    return OutsideProfiles(
        profiles,
        score_weight=max(1, *(sum(plugin.weight for plugin in profile.points["score"]) for profile in resolved)),
        filters=any(points[point] for point in FILTER_POINTS),
        scores=bool(points["score"]),
        binds=any(points[point] for point in BIND_POINTS),
        unserved=_unserved(points),
    )


def _cut_down(profile: ResolvedProfile, outside: Collection[str]) -> ResolvedProfile:
    points = {
        point: tuple(plugin for plugin in plugins if plugin.name in outside)
        for point, plugins in profile.points.items()
    }
    points["bind"] = (*points["bind"], ResolvedPlugin(DefaultBinder.name))
    names = tuple(name for name in profile.plugin_names if name in outside)
    return msgspec.structs.replace(profile, points=points, plugin_names=(*names, DefaultBinder.name))


def _build(cluster: Cluster, resolved: ResolvedProfile, registry: Registry) -> Profile:
    return build_profile(resolved, registry, EngineHandle(cluster, Seeded(0)))


def _names_at(profiles: list[ResolvedProfile], point: str) -> set[str]:
    return {plugin.name for profile in profiles for plugin in profile.points[point]}


def _unserved(points: Mapping[str, set[str]]) -> dict[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {}
    for point, names in points.items():
        if point not in _SERVED_POINTS:
            for name in names:
                found.setdefault(name, []).append(point)
    return {name: tuple(extension_points) for name, extension_points in sorted(found.items())}


DEFAULT_SCHEDULER_NAME = "default-scheduler"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where kube-scheduler finds the server, and how it is called there."""

    url: str
    ca_file: str = ""
    """What kube-scheduler is to trust: the server's own certificate will do."""
    asks_for_certificate: bool = False
    token: str | None = None
    """What callers show where no certificate is asked for; part of the address."""
    timeout_s: int = 5


def extender_configuration(
    profiles: OutsideProfiles, endpoint: Endpoint, *, is_followed: bool, binds: bool
) -> ExtenderConfiguration:
    """`binds` asks for bind also where no plugin takes part in it."""
    is_tls = endpoint.url.startswith("https://")
    tls = None
    if is_tls:
        certificate = ("/path/to/client.crt", "/path/to/client.key") if endpoint.asks_for_certificate else ("", "")
        tls = ExtenderTLSConfig(ca_file=endpoint.ca_file, cert_file=certificate[0], key_file=certificate[1])
    return ExtenderConfiguration(
        url_prefix=endpoint.url if endpoint.token is None else with_token(endpoint.url, endpoint.token),
        filter_verb="filter" if profiles.filters else "",
        preempt_verb="preempt" if profiles.filters and is_followed else "",
        prioritize_verb="prioritize" if profiles.scores else "",
        weight=profiles.score_weight if profiles.scores else 0,
        bind_verb="bind" if is_followed and (binds or profiles.binds) else "",
        enable_https=is_tls,
        tls_config=tls,
        http_timeout=Duration(endpoint.timeout_s * 10**9),
        node_cache_capable=is_followed,
    )


def configuration_yaml(extender: ExtenderConfiguration, scheduler_names: list[str]) -> str:
    """A whole KubeSchedulerConfiguration; profiles only where they have names of their own."""
    manifest: dict[str, object] = {"apiVersion": API_VERSION, "kind": "KubeSchedulerConfiguration"}
    if scheduler_names != [DEFAULT_SCHEDULER_NAME]:
        manifest["profiles"] = [{"schedulerName": name} for name in scheduler_names]
    manifest["extenders"] = [plain(extender)]
    return to_yaml(manifest)
