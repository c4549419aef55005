"""KubeSchedulerConfiguration as a whole.

Next: `load` for how one comes about, `profile` for its profiles, `extenders` for its extenders.
"""

from __future__ import annotations

from kubesched.k8s.model.times import Duration
from kubesched.scheduler.config.extenders import ExtenderConfiguration
from kubesched.scheduler.config.profile import KubeSchedulerProfile
from kubesched.scheduler.config.schema import ConfigStruct, Int32, Int64


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
