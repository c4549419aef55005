"""All flags of `kubesched run`: those of kube-scheduler v1.36.4 in its groups, older ones, `--plugin` and `--context`.

The older ones are those that people still carry, accepted with what they became: the Policy flags went with v1.23, the
others between v1.19 and v1.24.

Next: `effective` for how flags and configuration file go together, and for what older ones come to.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from kubesched.k8s.model import quantity
from kubesched.live.options.flag import (
    BOOL,
    DURATION,
    FLOAT32,
    GATES,
    INT,
    INT32,
    INT32S,
    IP,
    LEVEL,
    QUANTITY,
    STRING,
    STRING_MAP,
    STRINGS,
    VERSION,
    VMODULE,
    Flag,
    FlagUse,
)
from kubesched.live.serving.settings import DEFAULT_PORT
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
        "Python file with plugins; they are enabled unless the configuration mentions them. Repeatable. "
        "kube-scheduler has no such flag.",
    ),
    Flag(
        "no-class-cache",
        BOOL,
        False,
        "Evaluate every pod from scratch: slower, same results. kube-scheduler has no such flag.",
    ),
    Flag(
        "web",
        BOOL,
        False,
        "Serve a read-only web page at /web/ on the secure port, for users who may get /web/api/*. "
        "kube-scheduler has no such flag.",
    ),
    Flag(
        "record",
        STRING,
        "",
        "Keep a journal of the scheduling loop's inputs in this directory, for kubesched replay --exact and "
        "kubesched debug. kube-scheduler has no such flag.",
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
        "Profile lock contention too.",
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
        "Kubeconfig with the API server's address and the credentials; without it, those of the pod it runs in.",
        is_deprecated=True,
        yields_to_config=True,
    ),
    Flag(
        "kube-api-content-type",
        STRING,
        _CONNECTION.content_type,
        "Content type of bindings, if it is the default; all else is sent as application/json.",
        is_deprecated=True,
        yields_to_config=True,
    ),
    Flag(
        "kube-api-qps",
        FLOAT32,
        _CONNECTION.qps,
        "Requests to the API server per second.",
        is_deprecated=True,
        yields_to_config=True,
    ),
    Flag(
        "kube-api-burst",
        INT32,
        _CONNECTION.burst,
        "Burst of requests to the API server.",
        is_deprecated=True,
        yields_to_config=True,
    ),
    Flag(
        "pod-max-in-unschedulable-pods-duration",
        DURATION,
        Duration.of_seconds(300),
        "How long a pod stays unschedulable before it is retried without an event.",
        is_deprecated=True,
    ),
)

LEADER_ELECTION_FLAGS = (
    Flag("leader-elect", BOOL, True, "Schedule only while holding the lease, so that other replicas can stand by."),
    Flag(
        "leader-elect-lease-duration",
        DURATION,
        _ELECTION.lease_duration,
        "How long standbys wait after the last renewal before they acquire the lease.",
    ),
    Flag(
        "leader-elect-renew-deadline",
        DURATION,
        _ELECTION.renew_deadline,
        "How long the leader tries to renew before it gives up; less than the lease duration.",
    ),
    Flag(
        "leader-elect-retry-period",
        DURATION,
        _ELECTION.retry_period,
        "Time between attempts to acquire or renew the lease.",
    ),
    Flag(
        "leader-elect-resource-lock",
        STRING,
        _ELECTION.resource_lock,
        "Type of the lock object; only leases is supported.",
    ),
    Flag("leader-elect-resource-name", STRING, _ELECTION.resource_name, "Name of the lock object."),
    Flag("leader-elect-resource-namespace", STRING, _ELECTION.resource_namespace, "Namespace of the lock object."),
)

FEATURE_GATE_FLAGS = (
    Flag(
        "emulated-version",
        STRINGS,
        (),
        "Version of Kubernetes to emulate; only kube=1.36 is supported.",
    ),
    Flag(
        "min-compatibility-version",
        STRINGS,
        (),
        "Lowest version of the other control plane components.",
        use=FlagUse.WITHOUT_EFFECT,
        why="no feature of v1.36 depends on it",
    ),
    Flag("feature-gates", GATES, (), "Feature gates to enable or disable; repeatable."),
)

METRICS_FLAGS = (
    Flag(
        "show-hidden-metrics-for-version",
        STRING,
        "",
        "Show metrics hidden since this version; it must be the previous one, 1.35.",
    ),
    Flag("disabled-metrics", STRINGS, (), "Metrics to disable, by their full names."),
    Flag(
        "allow-metric-labels",
        STRING_MAP,
        (),
        "Allowed values of a metric's label; others become `unexpected`: metric,label=value,value.",
    ),
    Flag(
        "allow-metric-labels-manifest",
        STRING,
        "",
        "YAML file with allowed values: a mapping from metric,label to value,value.",
    ),
)

LOGS_FLAGS = (
    Flag("logging-format", STRING, "text", "Log format: text or json."),
    Flag(
        "log-flush-frequency",
        DURATION,
        Duration.of_seconds(5),
        "Longest time until a log line is written.",
        use=FlagUse.WITHOUT_EFFECT,
        why="every line is written at once",
    ),
    Flag("v", LEVEL, 0, "Log verbosity; 0 is the least."),
    Flag("vmodule", VMODULE, (), "Verbosity for files whose names match a pattern; text format only."),
    *(
        flag
        for form, title in (("text", "Text"), ("json", "JSON"))
        for flag in (
            Flag(
                f"log-{form}-split-stream",
                BOOL,
                False,
                f"{title} format: errors to stderr, everything else to stdout.",
                use=FlagUse.REFUSED,
                why=_SPLIT_LOGS,
            ),
            Flag(
                f"log-{form}-info-buffer-size",
                QUANTITY,
                quantity.parse("0"),
                f"{title} format: number of bytes to buffer before writing to stdout.",
                use=FlagUse.REFUSED,
                why=_SPLIT_LOGS,
            ),
        )
    ),
)

GLOBAL_FLAGS = (Flag("version", VERSION, "false", "Print the version and exit; --version=raw says more."),)


_TEN_SECONDS = Duration.of_seconds(10)

SECURE_SERVING_FLAGS = (
    Flag("bind-address", IP, "0.0.0.0", "Address to listen on; 0.0.0.0 and :: mean all interfaces."),
    Flag("secure-port", INT, DEFAULT_PORT, "Port to serve HTTPS on; 0 disables serving."),
    Flag(
        "disable-http2-serving",
        BOOL,
        False,
        "Do not serve HTTP/2.",
        use=FlagUse.WITHOUT_EFFECT,
        why="only HTTP/1.1 is served",
        fits=(True,),
    ),
    Flag(
        "cert-dir",
        STRING,
        "",
        "Directory of kube-scheduler.crt and kube-scheduler.key, which are created if missing; by default a "
        "self-signed certificate is kept in memory. Ignored if --tls-cert-file is given.",
    ),
    Flag("tls-cert-file", STRING, "", "File with the certificate for HTTPS, followed by its CA certificates."),
    Flag("tls-private-key-file", STRING, "", "File with the private key of --tls-cert-file."),
    Flag(
        "tls-cipher-suites",
        STRINGS,
        (),
        "Cipher suites to offer, by their IANA names; not for TLS 1.3. By default, OpenSSL's.",
    ),
    Flag(
        "tls-curve-preferences",
        INT32S,
        (),
        "Key exchange mechanisms to offer, as Go CurveID numbers.",
        use=FlagUse.REFUSED,
        why="Python's TLS cannot be limited to a list of key exchange mechanisms",
    ),
    Flag(
        "tls-min-version",
        STRING,
        "",
        "Lowest TLS version: VersionTLS10, VersionTLS11, VersionTLS12 (the default) or VersionTLS13.",
    ),
    Flag(
        "tls-sni-cert-key",
        STRINGS,
        (),
        "An additional certificate and key, for some host names: cert,key[:name,name].",
        use=FlagUse.REFUSED,
        why="one certificate is served for all names",
    ),
    Flag(
        "http2-max-streams-per-connection",
        INT,
        0,
        "Maximum number of streams per HTTP/2 connection.",
        use=FlagUse.WITHOUT_EFFECT,
        why="only HTTP/1.1 is served",
    ),
    Flag("permit-port-sharing", BOOL, False, "Let several processes listen on the port (SO_REUSEPORT)."),
    Flag(
        "permit-address-sharing",
        BOOL,
        False,
        "Listen even if the port is in TIME_WAIT or used on another address (SO_REUSEADDR).",
    ),
)

AUTHENTICATION_FLAGS = (
    Flag(
        "authentication-kubeconfig",
        STRING,
        "",
        "Kubeconfig of a user who may create tokenreviews; in a pod, its service account by default. Without either, "
        "no token is accepted, and no client CA is looked up in the cluster.",
    ),
    Flag(
        "authentication-token-webhook-cache-ttl",
        DURATION,
        _TEN_SECONDS,
        "How long to cache the results of TokenReviews.",
    ),
    Flag(
        "client-ca-file",
        STRING,
        "",
        "CAs whose client certificates are trusted; the common name is the user.",
    ),
    Flag("requestheader-username-headers", STRINGS, ("x-remote-user",), "Headers with the user, set by a proxy."),
    Flag("requestheader-uid-headers", STRINGS, (), "Headers with the user's UID, set by a proxy."),
    Flag("requestheader-group-headers", STRINGS, ("x-remote-group",), "Headers with the groups, set by a proxy."),
    Flag(
        "requestheader-extra-headers-prefix",
        STRINGS,
        ("x-remote-extra-",),
        "Prefixes of headers with extra fields of the user, set by a proxy.",
    ),
    Flag(
        "requestheader-client-ca-file",
        STRING,
        "",
        "CAs for the client certificates of proxies that may set these headers.",
    ),
    Flag(
        "requestheader-allowed-names",
        STRINGS,
        (),
        "Common names of proxies that may set these headers; by default, any signed by --requestheader-client-ca-file.",
    ),
    Flag(
        "authentication-skip-lookup",
        BOOL,
        False,
        "Do not look up missing authentication settings in the cluster.",
    ),
    Flag(
        "authentication-tolerate-lookup-failure",
        BOOL,
        True,
        "Continue if that lookup fails; all requests may then be anonymous.",
    ),
)

AUTHORIZATION_FLAGS = (
    Flag(
        "authorization-kubeconfig",
        STRING,
        "",
        "Kubeconfig of a user who may create subjectaccessreviews; in a pod, its service account by default. Without "
        "either, only --authorization-always-allow-paths are served.",
    ),
    Flag(
        "authorization-webhook-cache-authorized-ttl",
        DURATION,
        _TEN_SECONDS,
        "How long to cache that a request is allowed.",
    ),
    Flag(
        "authorization-webhook-cache-unauthorized-ttl",
        DURATION,
        _TEN_SECONDS,
        "How long to cache that a request is denied.",
    ),
    Flag(
        "authorization-always-allow-paths",
        STRINGS,
        ("/healthz", "/readyz", "/livez"),
        "Paths served without authorization; a trailing * matches any suffix.",
    ),
)


_INSECURE = "nothing is served without TLS; see --secure-port and --bind-address"

OLDER_FLAGS = (
    Flag(
        "emulate",
        STRING,
        "",
        "Version of kube-scheduler to emulate: 1.13, 1.14, 1.17, 1.18, 1.19, 1.37, or 1.36-alpha for pod groups with "
        "v1.36's flaws. kube-scheduler has no such flag.",
    ),
    Flag(
        "policy-config-file",
        STRING,
        "",
        "File with a Policy, YAML or JSON; without --emulate it is converted to a profile.",
        is_deprecated=True,
        yields_to_config=True,
    ),
    Flag(
        "policy-configmap",
        STRING,
        "",
        "ConfigMap with a Policy under the key policy.cfg; takes precedence over --policy-config-file.",
        is_deprecated=True,
        yields_to_config=True,
    ),
    Flag(
        "policy-configmap-namespace",
        STRING,
        "kube-system",
        "Namespace of that ConfigMap.",
        is_deprecated=True,
        yields_to_config=True,
    ),
    Flag(
        "use-legacy-policy-config",
        BOOL,
        False,
        "Use the Policy file even if a ConfigMap is given.",
        is_deprecated=True,
        yields_to_config=True,
    ),
    Flag(
        "algorithm-provider",
        STRING,
        "",
        "DefaultProvider or ClusterAutoscalerProvider, which prefers nodes in use.",
        is_deprecated=True,
        yields_to_config=True,
    ),
    Flag(
        "scheduler-name",
        STRING,
        "default-scheduler",
        "Name of the profile, as in the pods' schedulerName.",
        is_deprecated=True,
        yields_to_config=True,
    ),
    Flag(
        "hard-pod-affinity-symmetric-weight",
        INT32,
        1,
        "hardPodAffinityWeight of InterPodAffinity, 0 to 100.",
        is_deprecated=True,
        yields_to_config=True,
    ),
    Flag(
        "lock-object-name",
        STRING,
        "kube-scheduler",
        "The same as --leader-elect-resource-name.",
        is_deprecated=True,
        yields_to_config=True,
    ),
    Flag(
        "lock-object-namespace",
        STRING,
        "kube-system",
        "The same as --leader-elect-resource-namespace.",
        is_deprecated=True,
        yields_to_config=True,
    ),
    Flag(
        "failure-domains",
        STRING,
        "",
        "Topology labels for an empty topology key.",
        use=FlagUse.WITHOUT_EFFECT,
        why="a topology key must be given",
        is_deprecated=True,
    ),
    Flag(
        "port",
        INT32,
        0,
        "Port to serve on without TLS.",
        use=FlagUse.WITHOUT_EFFECT,
        why=_INSECURE,
        is_deprecated=True,
    ),
    Flag(
        "address",
        STRING,
        "",
        "Address to serve on without TLS.",
        use=FlagUse.WITHOUT_EFFECT,
        why=_INSECURE,
        is_deprecated=True,
    ),
)


_GROUPS = {
    "misc": MISC_FLAGS,
    "secure serving": SECURE_SERVING_FLAGS,
    "authentication": AUTHENTICATION_FLAGS,
    "authorization": AUTHORIZATION_FLAGS,
    "deprecated": DEPRECATED_FLAGS,
    "older": OLDER_FLAGS,
    "leader election": LEADER_ELECTION_FLAGS,
    "feature gate": FEATURE_GATE_FLAGS,
    "metrics": METRICS_FLAGS,
    "logs": LOGS_FLAGS,
    "global": GLOBAL_FLAGS,
}

FLAGS: tuple[Flag, ...] = tuple(replace(flag, group=group) for group, flags in _GROUPS.items() for flag in flags)
FLAGS_BY_NAME: Mapping[str, Flag] = MappingProxyType({flag.name: flag for flag in FLAGS})
GROUPS: tuple[str, ...] = tuple(_GROUPS)
