"""Flags of earlier kube-schedulers that people still carry, and `--emulate`: accepted with what they became.

The Policy flags went with v1.23, the others between v1.19 and v1.24. Next: `older_scheduler` for what is made of them.
"""

from __future__ import annotations

from kubesched.live.options.flag import Flag, FlagUse
from kubesched.live.options.value_kinds import BOOL, INT32, STRING

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
