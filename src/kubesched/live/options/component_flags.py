"""The flags about the scheduler itself: configuration, connection, leader election, features, metrics, logs.

Next: `effective` for how flags and configuration file go together.
"""

from __future__ import annotations

from kubesched.k8s.model import quantity
from kubesched.live.options.flag import Flag, FlagUse
from kubesched.live.options.value_kinds import (
    BOOL,
    DURATION,
    FLOAT32,
    GATES,
    INT32,
    LEVEL,
    QUANTITY,
    STRING,
    STRING_MAP,
    STRINGS,
    VERSION,
    VMODULE,
)
from kubesched.scheduler.config import ClientConnectionConfiguration, Duration, LeaderElectionConfiguration

_ELECTION = LeaderElectionConfiguration()
_CONNECTION = ClientConnectionConfiguration()
_SPLIT_LOGS = "Feature LoggingAlphaOptions is disabled, and cannot be enabled"

MISC_FLAGS = (
    Flag("config", STRING, "", "Configuration file (kubescheduler.config.k8s.io/v1, YAML or JSON)."),
    Flag("write-config-to", STRING, "", "Write the configuration with all its defaults to this file, and exit."),
    Flag("master", STRING, "", "Address of the API server, instead of the one in the kubeconfig."),
    Flag(
        "plugin",
        STRINGS,
        (),
        "Python file with plugins to run beside the others, unless the configuration mentions them. Repeatable. "
        "kube-scheduler has no such flag.",
    ),
    Flag("context", STRING, "", "Context of the kubeconfig to use. kube-scheduler has no such flag."),
)

DEPRECATED_FLAGS = (
    Flag(
        "profiling",
        BOOL,
        True,
        "Serve profiles under /debug/pprof/.",
        use=FlagUse.WITHOUT_EFFECT,
        why="there are no Go profiles to serve",
        fits=(False,),
        is_deprecated=True,
        yields_to_config=True,
    ),
    Flag(
        "contention-profiling",
        BOOL,
        True,
        "Profile contention for locks as well.",
        use=FlagUse.WITHOUT_EFFECT,
        why="there are no Go profiles to serve",
        fits=(False,),
        is_deprecated=True,
        yields_to_config=True,
    ),
    Flag(
        "kubeconfig",
        STRING,
        "",
        "Kubeconfig with the address of the API server and the credentials; without it those of the pod it runs in.",
        is_deprecated=True,
        yields_to_config=True,
    ),
    Flag(
        "kube-api-content-type",
        STRING,
        _CONNECTION.content_type,
        "Content type of requests to the API server.",
        use=FlagUse.WITHOUT_EFFECT,
        why="requests are always application/json",
        fits=("application/json",),
        is_deprecated=True,
        yields_to_config=True,
    ),
    Flag(
        "kube-api-qps",
        FLOAT32,
        _CONNECTION.qps,
        "Requests to the API server a second.",
        is_deprecated=True,
        yields_to_config=True,
    ),
    Flag(
        "kube-api-burst",
        INT32,
        _CONNECTION.burst,
        "Requests to the API server that may be made at once on top.",
        is_deprecated=True,
        yields_to_config=True,
    ),
    Flag(
        "pod-max-in-unschedulable-pods-duration",
        DURATION,
        Duration.of_seconds(300),
        "How long a pod stays among the unschedulable ones before it is tried again without a reason.",
        is_deprecated=True,
    ),
)

LEADER_ELECTION_FLAGS = (
    Flag("leader-elect", BOOL, True, "Schedule only while holding the lease, such that replicas can stand by."),
    Flag(
        "leader-elect-lease-duration",
        DURATION,
        _ELECTION.lease_duration,
        "How long others wait, after the last renewal, before they take the lease over.",
    ),
    Flag(
        "leader-elect-renew-deadline",
        DURATION,
        _ELECTION.renew_deadline,
        "How long the leader tries to renew before it gives up; less than the lease duration.",
    ),
    Flag("leader-elect-retry-period", DURATION, _ELECTION.retry_period, "How long to wait between tries."),
    Flag(
        "leader-elect-resource-lock",
        STRING,
        _ELECTION.resource_lock,
        "Kind of object that holds the lock; nothing but leases.",
    ),
    Flag("leader-elect-resource-name", STRING, _ELECTION.resource_name, "Name of that object."),
    Flag("leader-elect-resource-namespace", STRING, _ELECTION.resource_namespace, "Namespace of that object."),
)

FEATURE_GATE_FLAGS = (
    Flag(
        "emulated-version",
        STRINGS,
        (),
        "Version of Kubernetes to behave as: kube=1.36 is the only one.",
    ),
    Flag(
        "min-compatibility-version",
        STRINGS,
        (),
        "Lowest version of the other components of the control plane.",
        use=FlagUse.WITHOUT_EFFECT,
        why="no feature of v1.36 depends on it",
    ),
    Flag("feature-gates", GATES, (), "Features to turn on or off; may be given several times."),
)

METRICS_FLAGS = (
    Flag(
        "show-hidden-metrics-for-version",
        STRING,
        "",
        "Show the metrics that were hidden since this version, the one before: 1.35.",
    ),
    Flag("disabled-metrics", STRINGS, (), "Metrics to leave out, by their full names."),
    Flag(
        "allow-metric-labels",
        STRING_MAP,
        (),
        "Values that a label of a metric may have; others become `unexpected`: metric,label=value,value.",
    ),
    Flag(
        "allow-metric-labels-manifest",
        STRING,
        "",
        "YAML file with such values: a mapping from metric,label to value,value.",
    ),
)

LOGS_FLAGS = (
    Flag("logging-format", STRING, "text", "Format of the log: text or json."),
    Flag(
        "log-flush-frequency",
        DURATION,
        Duration.of_seconds(5),
        "Longest time until a line is written.",
        use=FlagUse.WITHOUT_EFFECT,
        why="every line is written at once",
    ),
    Flag("v", LEVEL, 0, "How much to log; 0 is the least."),
    Flag("vmodule", VMODULE, (), "Other levels for files whose names match a pattern; text format only."),
    *(
        flag
        for form, title in (("text", "Text"), ("json", "JSON"))
        for flag in (
            Flag(
                f"log-{form}-split-stream",
                BOOL,
                False,
                f"{title} format: errors to stderr, all else to stdout.",
                use=FlagUse.REFUSED,
                why=_SPLIT_LOGS,
            ),
            Flag(
                f"log-{form}-info-buffer-size",
                QUANTITY,
                quantity.parse("0"),
                f"{title} format: collect as many bytes before they are written to stdout.",
                use=FlagUse.REFUSED,
                why=_SPLIT_LOGS,
            ),
        )
    ),
)

GLOBAL_FLAGS = (Flag("version", VERSION, "false", "Print the version and exit; --version=raw says more."),)
