"""All flags of `kubesched run`: those of kube-scheduler v1.36.4, in its groups, those of older ones, `--plugin` and
`--context`.

Next: `component_flags` and `serving_flags` for the flags one by one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from kubesched.live.options.component_flags import (
    DEPRECATED_FLAGS,
    FEATURE_GATE_FLAGS,
    GLOBAL_FLAGS,
    LEADER_ELECTION_FLAGS,
    LOGS_FLAGS,
    METRICS_FLAGS,
    MISC_FLAGS,
)
from kubesched.live.options.flag import Flag
from kubesched.live.options.older_flags import OLDER_FLAGS
from kubesched.live.options.serving_flags import AUTHENTICATION_FLAGS, AUTHORIZATION_FLAGS, SECURE_SERVING_FLAGS

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
