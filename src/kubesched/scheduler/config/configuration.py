"""KubeSchedulerConfiguration as a whole, with its extenders and profiles; and back into a manifest.

A profile is a scheduler name, the plugins that run under it by extension point, and their arguments. The plugins that a
file names are merged with the default ones. At each extension point: default plugins in their order, less those
disabled, those named again replaced where they stand; then the others that the file enables. A plugin both disabled and
enabled so moves to the end: that is how to reorder.

A manifest is written with all defaults, such that loading it gives the same configuration.

Next: `load` for how a configuration comes about, `plugin_args` for the arguments of plugins, `resolve` for the order in
which they run.
"""

from __future__ import annotations

import base64
import copy
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from kubesched.k8s.model.kubernetes_yaml import plain_yaml
from kubesched.k8s.model.times import Duration
from kubesched.scheduler.config.plugin_args import (
    API_VERSION,
    ConfigStruct,
    Int32,
    Int64,
    PluginArgs,
    SparseConfigStruct,
)


class ExtenderManagedResource(SparseConfigStruct, frozen=True):
    """An extended resource that an extender manages."""

    name: str = ""
    """The resource's name."""
    ignored_by_scheduler: bool = False
    """Leave the resource to the extender: NodeResourcesFit does not check it."""


class ExtenderTLSConfig(SparseConfigStruct, frozen=True):
    """How to talk TLS with an extender."""

    insecure: bool = False
    """Do not verify the server's certificate. For tests only."""
    server_name: str = ""
    """The name to expect in the certificate, if it is not the host's."""
    cert_file: str = ""
    """The client's certificate, as a file."""
    key_file: str = ""
    """The client's key, as a file."""
    ca_file: str = ""
    """Certificates to trust, as a file."""
    cert_data: bytes = b""
    """The client's certificate itself, PEM in base64; goes before `certFile`."""
    key_data: bytes = b""
    """The client's key itself; goes before `keyFile`."""
    ca_data: bytes = b""
    """Certificates to trust themselves; goes before `caFile`."""


class ExtenderConfiguration(SparseConfigStruct, frozen=True):
    """An extender and what it is asked. A verb left empty is never called."""

    url_prefix: str = ""
    """Where the extender is; a verb is appended to it."""
    filter_verb: str = ""
    """Verb of the call that filters nodes."""
    preempt_verb: str = ""
    """Verb of the call that may change preemption victims."""
    prioritize_verb: str = ""
    """Verb of the call that scores nodes."""
    weight: Int64 = 0
    """How much its scores count; must be positive when `prioritizeVerb` is given."""
    bind_verb: str = ""
    """Verb of the call that binds pods. At most one extender may bind."""
    enable_https: bool = msgspec.field(default=False, name="enableHTTPS")
    """Use HTTPS."""
    tls_config: ExtenderTLSConfig | None = None
    """How to talk TLS."""
    http_timeout: Duration = Duration(0)
    """How long a call may take; `0s` stands for 5 seconds. A filter call that takes longer fails the pod."""
    node_cache_capable: bool = False
    """The extender knows the nodes: send it their names only."""
    managed_resources: tuple[ExtenderManagedResource, ...] = ()
    """Send it only pods that ask for one of these; all pods if empty."""
    ignorable: bool = False
    """Carry on without the extender when it fails."""

    @property
    def shown_url(self) -> str:
        """`urlPrefix` as messages, events and metrics show it: a password in it must not show."""
        return hide_password(self.url_prefix)

    @property
    def trusts_anybody(self) -> bool:
        """Whether it is called over TLS without a look at who answers, as kube-scheduler does without authorities."""
        tls = self.tls_config or ExtenderTLSConfig()
        return tls.insecure or (self.enable_https and not (tls.ca_data or tls.ca_file))


def hide_password(url: str) -> str:
    """As Go's HTTP client writes addresses in its errors."""
    return re.sub(r"(://[^/@:]*):[^/@]*@", r"\1:***@", url, count=1)


_THIS_MACHINE = re.compile(r"(https?://)?([^/@]*@)?(localhost|127\.[0-9.]+|\[::1\])(:[0-9]+)?(/|$)")


def extender_warnings(extenders: Sequence[ExtenderConfiguration]) -> list[str]:
    """What is allowed and leaves decisions to whoever happens to answer; one line each, naming the field."""
    found: list[str] = []
    for number, extender in enumerate(extenders):
        at, url = f"extenders[{number}]", extender.shown_url
        if extender.tls_config is not None and extender.tls_config.insecure:
            found.append(
                f"{at}.tlsConfig.insecure: whoever answers at {url} decides where pods go, whatever its certificate"
            )
        elif extender.trusts_anybody:
            found.append(
                f"{at}: enableHTTPS without tlsConfig.caFile or caData trusts any certificate, as in kube-scheduler: "
                f"whoever answers at {url} decides where pods go"
            )
        elif extender.tls_config is None and not url.startswith("https://") and not _THIS_MACHINE.match(url):
            found.append(f"{at}.urlPrefix: {url} is neither encrypted nor verified: consider enableHTTPS and tlsConfig")
    return found


class LeaderElectionConfiguration(ConfigStruct, frozen=True):
    """How replicas agree on which of them schedules."""

    leader_elect: bool = True
    """Schedule only while holding the lease."""
    lease_duration: Duration = Duration.of_seconds(15)
    """How long others wait, after the last renewal, before they take the lease over."""
    renew_deadline: Duration = Duration.of_seconds(10)
    """How long the leader tries to renew before it gives up; must be less than `leaseDuration`."""
    retry_period: Duration = Duration.of_seconds(2)
    """How long to wait between tries."""
    resource_lock: str = "leases"
    """The kind of object that holds the lock; nothing but `leases` is accepted."""
    resource_name: str = "kube-scheduler"
    """The name of that object."""
    resource_namespace: str = "kube-system"
    """The namespace of that object."""


class ClientConnectionConfiguration(ConfigStruct, frozen=True):
    """How to reach the API server."""

    kubeconfig: str = ""
    """Path of a kubeconfig file."""
    accept_content_types: str = ""
    """The Accept header of requests, if it shall not follow from `contentType`."""
    content_type: str = "application/vnd.kubernetes.protobuf"
    """The content type of what is sent."""
    qps: float = 50.0
    """Requests a second."""
    burst: Int32 = 100
    """Requests that may be made at once on top."""


class KubeSchedulerConfiguration(ConfigStruct, frozen=True):
    """The configuration of a scheduler."""

    parallelism: Int32 = 16
    """How many nodes are looked at in parallel; greater than 0."""
    leader_election: LeaderElectionConfiguration = LeaderElectionConfiguration()
    """Leader election."""
    client_connection: ClientConnectionConfiguration = ClientConnectionConfiguration()
    """The connection to the API server."""
    enable_profiling: bool = True
    """Serve profiles of the running process."""
    enable_contention_profiling: bool = True
    """Profile lock contention as well. Where absent, it follows `enableProfiling`."""
    percentage_of_nodes_to_score: Int32 = 0
    """Stop looking for more feasible nodes at this percentage of all nodes, 0 to 100; 0 adapts to the cluster."""
    pod_initial_backoff_seconds: Int64 = 1
    """How long an unschedulable pod waits at first; greater than 0."""
    pod_max_backoff_seconds: Int64 = 10
    """How long it waits at most; not less than `podInitialBackoffSeconds`."""
    profiles: tuple[KubeSchedulerProfile, ...] = ()
    """The profiles; one with all defaults if none is given."""
    extenders: tuple[ExtenderConfiguration, ...] = ()
    """Extenders, shared by all profiles."""
    delay_cache_until_active: bool = False
    """Fill the caches only once this replica leads: less memory while waiting, a slower start."""
    plugin_paths: tuple[str, ...] = ()
    """Python files with plugins of your own, relative to the configuration's file; kube-scheduler has no such field.
    The plugins in them are known by that, and run where a profile enables them."""
    feature_gates: dict[str, bool] | None = None
    """Feature gates of v1.36 away from their defaults, as `--feature-gates` has them, which goes before this;
    kube-scheduler has no such field."""
    emulate: str | None = None
    """`1.36-alpha` schedules pod groups as v1.36 does where that is known to be wrong; kube-scheduler has no such
    field."""

    @property
    def gates(self) -> Mapping[str, bool]:
        """Feature gates away from their defaults."""
        return self.feature_gates or {}


def to_manifest(config: KubeSchedulerConfiguration) -> dict[str, Any]:
    """The complete `kubescheduler.config.k8s.io/v1` manifest, made of what JSON and YAML can hold."""
    manifest: dict[str, Any] = {"apiVersion": API_VERSION, "kind": "KubeSchedulerConfiguration"}
    return manifest | _plain_struct(config)


def to_yaml(manifest: dict[str, Any]) -> str:
    """A manifest as YAML, which Kubernetes reads back as the same manifest."""
    return plain_yaml(manifest)


def plain(value: Any) -> Any:
    """A value of the configuration as JSON would carry it. Structs leave out what is absent."""
    match value:
        case msgspec.Struct():
            return _plain_struct(value)
        case tuple():
            return [plain(item) for item in value]
        case Duration():
            return str(value)
        case bytes():
            return base64.b64encode(value).decode()
        case float() if value.is_integer():
            return int(value)
    return copy.deepcopy(value)


def _plain_struct(struct: msgspec.Struct) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if isinstance(struct, PluginArgs):
        found |= {"apiVersion": API_VERSION, "kind": type(struct).__name__}
    for field in msgspec.structs.fields(struct):
        value = getattr(struct, field.name)
        is_left_out = value == field.default and (struct.__struct_config__.omit_defaults or value == ())
        if value is not None and not is_left_out:
            found[field.encode_name] = plain(value)
    return found


EXTENSION_POINTS: Final = (
    "preEnqueue",
    "queueSort",
    "preFilter",
    "filter",
    "postFilter",
    "preScore",
    "score",
    "reserve",
    "permit",
    "preBind",
    "bind",
    "postBind",
    "placementGenerate",
    "placementScore",
)
"""Every point at which a plugin can run."""

MULTI_POINT: Final = "multiPoint"
"""Not a point of its own: a plugin enabled here runs at every point that it implements."""

WEIGHTED_POINTS: Final = frozenset({"score", "placementScore"})
"""The points where a plugin's weight counts."""


def interface_name(point: str) -> str:
    """What kube-scheduler's messages call a plugin of this point, such as `PreFilterPlugin`."""
    return f"{point[0].upper()}{point[1:]}Plugin"


ALL_PLUGINS = "*"
"""The name that, among the disabled plugins, stands for every plugin."""


class PluginRef(SparseConfigStruct, frozen=True):
    """A plugin by its name, with its weight."""

    name: str = ""
    """The plugin's name."""
    weight: Int32 = 0
    """How much its scores count; used at `score` and `placementScore` only. Absent or 0 counts as 1."""


class PluginSet(SparseConfigStruct, frozen=True):
    """The plugins of one extension point."""

    enabled: tuple[PluginRef, ...] = ()
    """Plugins to run in addition to the default ones; a default plugin named here keeps its place."""
    disabled: tuple[PluginRef, ...] = ()
    """Default plugins not to run; the name `*` stands for all of them. A plugin that is enabled as well runs."""


class Plugins(SparseConfigStruct, frozen=True):
    """The plugins of a profile, by extension point.

    What is said at a point itself goes before what is said at `multiPoint`, and that goes before the defaults.
    """

    pre_enqueue: PluginSet = PluginSet()
    """May hold a pod back before it enters the queue."""
    queue_sort: PluginSet = PluginSet()
    """Orders the queue. Exactly one plugin, the same in every profile."""
    pre_filter: PluginSet = PluginSet()
    """Looks at the pod once, before any node; may reject it or narrow the nodes down."""
    filter: PluginSet = PluginSet()
    """Rejects nodes that cannot run the pod."""
    post_filter: PluginSet = PluginSet()
    """Runs when no node is left; preemption is one of these."""
    pre_score: PluginSet = PluginSet()
    """Prepares for scoring."""
    score: PluginSet = PluginSet()
    """Ranks the nodes that are left; weights count."""
    reserve: PluginSet = PluginSet()
    """Takes note of resources that the pod will use on the chosen node, and gives them back on failure."""
    permit: PluginSet = PluginSet()
    """May delay or refuse the binding."""
    pre_bind: PluginSet = PluginSet()
    """Does what must be done before the pod is bound."""
    bind: PluginSet = PluginSet()
    """Binds the pod; the first plugin that does not pass on it decides. At least one plugin."""
    post_bind: PluginSet = PluginSet()
    """Told that the pod is bound."""
    multi_point: PluginSet = PluginSet()
    """Plugins that run at every point which they implement."""
    placement_generate: PluginSet = PluginSet()
    """Proposes placements for a pod group. At most one plugin."""
    placement_score: PluginSet = PluginSet()
    """Ranks placements of a pod group; weights count."""

    def at(self, point: str) -> PluginSet:
        """The set of an extension point, or of `multiPoint`, by its name in manifests."""
        found: PluginSet = getattr(self, _FIELD_OF_POINT[point])
        return found


_FIELD_OF_POINT = {field.encode_name: field.name for field in msgspec.structs.fields(Plugins)}


class PluginConfig(SparseConfigStruct, frozen=True):
    """The arguments of one plugin."""

    name: str = ""
    """The plugin's name."""
    args: PluginArgs | dict[str, Any] | None = None
    """Its arguments: for an in-tree plugin the kind `<name>Args` below, for any other a mapping passed on as it is."""


class KubeSchedulerProfile(SparseConfigStruct, frozen=True):
    """How pods that ask for one scheduler name are scheduled."""

    scheduler_name: str = ""
    """Pods with this `spec.schedulerName` use the profile. `default-scheduler` if there is only one profile."""
    percentage_of_nodes_to_score: Int32 | None = None
    """Overrides the field of the same name above, for this profile."""
    plugins: Plugins = Plugins()
    """Changes to the default plugins."""
    plugin_config: tuple[PluginConfig, ...] = ()
    """Arguments of plugins; a plugin without an entry uses its defaults."""


def merge_plugins(defaults: Plugins, custom: Plugins) -> Plugins:
    """The plugins of a profile: the default ones, changed as the file says."""
    merged = {
        field.name: merge_plugin_set(defaults.at(field.encode_name), custom.at(field.encode_name))
        for field in msgspec.structs.fields(Plugins)
    }
    return Plugins(**merged)


def merge_plugin_set(defaults: PluginSet, custom: PluginSet) -> PluginSet:
    # What is disabled stays on record: at a point of its own it also keeps multiPoint's plugins away.
    disabled = tuple(PluginRef(plugin.name) for plugin in (*custom.disabled, *defaults.disabled))
    disabled_names = {plugin.name for plugin in disabled}
    # Of a plugin named twice the later entry replaces the default one; `resolve` then refuses the other.
    replacement = {plugin.name: index for index, plugin in enumerate(custom.enabled)}
    kept = () if ALL_PLUGINS in disabled_names else defaults.enabled
    enabled = []
    used = set()
    for plugin in kept:
        if plugin.name in disabled_names:
            continue
        index = replacement.get(plugin.name)
        if index is None:
            enabled.append(plugin)
        else:
            enabled.append(custom.enabled[index])
            used.add(index)
    enabled.extend(plugin for index, plugin in enumerate(custom.enabled) if index not in used)
    return PluginSet(tuple(enabled), disabled)


def enabled_names(plugins: Plugins) -> set[str]:
    """Every plugin that is enabled anywhere."""
    return {plugin.name for point in (*EXTENSION_POINTS, MULTI_POINT) for plugin in plugins.at(point).enabled}
