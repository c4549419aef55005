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
        "Python file with plugins to run beside the others, unless the configuration mentions them. Repeatable. "
        "kube-scheduler has no such flag.",
    ),
    Flag(
        "no-class-cache",
        BOOL,
        False,
        "Decide for every pod from scratch: slower, with the same answers. kube-scheduler has no such flag.",
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


_TEN_SECONDS = Duration.of_seconds(10)

SECURE_SERVING_FLAGS = (
    Flag("bind-address", IP, "0.0.0.0", "Address to listen on; 0.0.0.0 and :: stand for all interfaces."),
    Flag("secure-port", INT, DEFAULT_PORT, "Port to serve HTTPS on; 0 serves nothing."),
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
        "Directory of kube-scheduler.crt and kube-scheduler.key, written there if absent; by default a certificate is "
        "made in memory. Ignored if --tls-cert-file is given.",
    ),
    Flag("tls-cert-file", STRING, "", "File of the certificate for HTTPS, followed by those of its authorities."),
    Flag("tls-private-key-file", STRING, "", "File of the private key of --tls-cert-file."),
    Flag(
        "tls-cipher-suites",
        STRINGS,
        (),
        "Cipher suites to offer, by their IANA names; those of TLS 1.3 cannot be chosen. By default OpenSSL decides.",
    ),
    Flag(
        "tls-curve-preferences",
        INT32S,
        (),
        "Key exchange mechanisms to offer, as numbers of Go's CurveID.",
        use=FlagUse.REFUSED,
        why="Python's TLS cannot be held to a list of key exchange mechanisms",
    ),
    Flag(
        "tls-min-version",
        STRING,
        "",
        "Lowest version of TLS to speak: VersionTLS10, VersionTLS11, VersionTLS12 (the default) or VersionTLS13.",
    ),
    Flag(
        "tls-sni-cert-key",
        STRINGS,
        (),
        "A further certificate and key, for the host names that it is for: cert,key[:name,name].",
        use=FlagUse.REFUSED,
        why="one certificate is served under all names",
    ),
    Flag(
        "http2-max-streams-per-connection",
        INT,
        0,
        "Most streams of a connection with HTTP/2.",
        use=FlagUse.WITHOUT_EFFECT,
        why="only HTTP/1.1 is served",
    ),
    Flag("permit-port-sharing", BOOL, False, "Let several processes listen on the port (SO_REUSEPORT)."),
    Flag(
        "permit-address-sharing",
        BOOL,
        False,
        "Take the port although the kernel still holds it, or holds it for another address (SO_REUSEADDR).",
    ),
)

AUTHENTICATION_FLAGS = (
    Flag(
        "authentication-kubeconfig",
        STRING,
        "",
        "Kubeconfig of a user who may create tokenreviews; in a pod, its own account by default. Without either nobody "
        "with a token is known, and no authority for client certificates is looked up in the cluster.",
    ),
    Flag(
        "authentication-token-webhook-cache-ttl",
        DURATION,
        _TEN_SECONDS,
        "How long to remember whom a token belongs to.",
    ),
    Flag(
        "client-ca-file",
        STRING,
        "",
        "Authorities whose client certificates are trusted; the common name is the user.",
    ),
    Flag("requestheader-username-headers", STRINGS, ("x-remote-user",), "Headers in which a proxy names the user."),
    Flag("requestheader-uid-headers", STRINGS, (), "Headers in which a proxy names the UID of the user."),
    Flag("requestheader-group-headers", STRINGS, ("x-remote-group",), "Headers in which a proxy names the groups."),
    Flag(
        "requestheader-extra-headers-prefix",
        STRINGS,
        ("x-remote-extra-",),
        "How the headers begin in which a proxy says more about the user.",
    ),
    Flag(
        "requestheader-client-ca-file",
        STRING,
        "",
        "Authorities for the client certificates of proxies that may name the user.",
    ),
    Flag(
        "requestheader-allowed-names",
        STRINGS,
        (),
        "Common names of proxies that may name the user; by default all that --requestheader-client-ca-file vouches "
        "for.",
    ),
    Flag(
        "authentication-skip-lookup",
        BOOL,
        False,
        "Do not look up in the cluster what the flags leave open about authentication.",
    ),
    Flag(
        "authentication-tolerate-lookup-failure",
        BOOL,
        True,
        "Go on if that lookup fails; everybody may then be anonymous.",
    ),
)

AUTHORIZATION_FLAGS = (
    Flag(
        "authorization-kubeconfig",
        STRING,
        "",
        "Kubeconfig of a user who may create subjectaccessreviews; in a pod, its own account by default. Without either"
        " only --authorization-always-allow-paths are served.",
    ),
    Flag(
        "authorization-webhook-cache-authorized-ttl",
        DURATION,
        _TEN_SECONDS,
        "How long to remember that a request is allowed.",
    ),
    Flag(
        "authorization-webhook-cache-unauthorized-ttl",
        DURATION,
        _TEN_SECONDS,
        "How long to remember that a request is not allowed.",
    ),
    Flag(
        "authorization-always-allow-paths",
        STRINGS,
        ("/healthz", "/readyz", "/livez"),
        "Paths that everybody may ask for; one that ends in * stands for all that begin so.",
    ),
)


_INSECURE = "nothing is served without TLS; see --secure-port and --bind-address"

OLDER_FLAGS = (
    Flag(
        "emulate",
        STRING,
        "",
        "Version of kube-scheduler to decide as: 1.13, 1.14, 1.17, 1.18 or 1.19. kube-scheduler has no such flag.",
    ),
    Flag(
        "policy-config-file",
        STRING,
        "",
        "File with a Policy, YAML or JSON; without --emulate it is translated into a profile.",
        is_deprecated=True,
        yields_to_config=True,
    ),
    Flag(
        "policy-configmap",
        STRING,
        "",
        "ConfigMap with a Policy under the key policy.cfg; it goes before --policy-config-file.",
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
        "Take the Policy from the file even where a ConfigMap is named.",
        is_deprecated=True,
        yields_to_config=True,
    ),
    Flag(
        "algorithm-provider",
        STRING,
        "",
        "DefaultProvider or ClusterAutoscalerProvider, which prefers nodes that are used already.",
        is_deprecated=True,
        yields_to_config=True,
    ),
    Flag(
        "scheduler-name",
        STRING,
        "default-scheduler",
        "Name of the profile: pods ask for it as their schedulerName.",
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
        "Topology labels that an empty topology key stood for.",
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
