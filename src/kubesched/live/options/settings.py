"""What the flags of `kubesched run` come to: settings for each part of the program, ready to be used.

Everything in here is checked, and no text is left to be parsed. No secret is in here: keys and tokens are named by
their files.

Next: `read` for how they come about; `kubesched.live.serving.settings` for those of the server.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from kubesched.framework.handle import Registry
from kubesched.live.serving.settings import ServingSettings
from kubesched.older.config import Emulation, PolicyConfigMap
from kubesched.scheduler.config import (
    ClientConnectionConfiguration,
    KubeSchedulerConfiguration,
    LeaderElectionConfiguration,
)
from kubesched.scheduler.config.feature_gates import FeatureGates
from kubesched.scheduler.plugin_loading import PluginSource

_QPS_OF_ANY_CLIENT = 5.0
_BURST_OF_ANY_CLIENT = 10


@dataclass(frozen=True, slots=True)
class LogSettings:
    """What to log, and how."""

    format: str
    """`text` or `json`."""
    verbosity: int
    vmodule: tuple[tuple[str, int], ...]
    """(pattern of file names, verbosity there)."""


@dataclass(frozen=True, slots=True)
class MetricsSettings:
    """What to leave out of the metrics."""

    disabled: frozenset[str]
    allowed_label_values: Mapping[tuple[str, str], frozenset[str]]
    """By (metric, label); other values are told as `unexpected`."""


@dataclass(frozen=True, slots=True)
class RunOptions:
    """All that `kubesched run` was told."""

    configuration: KubeSchedulerConfiguration
    """The effective one: file or defaults, and the flags that override them."""
    plugins: PluginSource
    """Where plugins from outside come from."""
    registry: Registry
    """All plugins."""
    emulation: Emulation | None
    """The older scheduler that decides in its place, if one was asked for."""
    policy_config_map: PolicyConfigMap | None
    """Where a Policy is still to be read from; the options are then to be read again with it."""
    master: str
    """Address of the API server; empty: as in the kubeconfig."""
    context: str
    """Context of the kubeconfig; empty: the current one."""
    keeps_classes: bool
    """Whether decisions come from the class cache."""
    serves_web_page: bool
    """Whether the secure port has the web page."""
    record_to: Path | None
    """Where to keep a journal of the scheduling loop."""
    write_config_to: Path | None
    pod_max_in_unschedulable_pods_for_s: float
    serving: ServingSettings | None
    """None: nothing is served."""
    permit_port_sharing: bool
    permit_address_sharing: bool
    authentication_kubeconfig: Path | None
    """Of a user who may ask whom a token belongs to. None: that of the pod; outside of pods tokens say nothing."""
    authorization_kubeconfig: Path | None
    """Of a user who may ask what others may do. None: that of the pod; outside of pods only open paths are served."""
    logs: LogSettings
    metrics: MetricsSettings
    gates: FeatureGates
    flags: Mapping[str, str]
    """Every flag with its value, given or default, as /flagz shows it."""
    warnings: tuple[str, ...]

    @property
    def kubeconfig(self) -> Path | None:
        """None: as in a pod of the cluster."""
        path = self.client_connection.kubeconfig
        return Path(path) if path else None

    @property
    def qps(self) -> float:
        """Requests a second; below 0: as many as there are. 0 stands for the default of all clients."""
        return self.client_connection.qps or _QPS_OF_ANY_CLIENT

    @property
    def burst(self) -> int:
        return self.client_connection.burst or _BURST_OF_ANY_CLIENT

    @property
    def client_connection(self) -> ClientConnectionConfiguration:
        return self.configuration.client_connection

    @property
    def leader_election(self) -> LeaderElectionConfiguration:
        return self.configuration.leader_election
