"""A configuration back into a manifest, with all its defaults, such that loading it gives the same configuration.

Next: `load` for the way in.
"""

from __future__ import annotations

import base64
import copy
from typing import Any

import msgspec

from kubesched.k8s.model.kubernetes_yaml import plain_yaml
from kubesched.k8s.model.times import Duration
from kubesched.scheduler.config.configuration import KubeSchedulerConfiguration
from kubesched.scheduler.config.plugin_args import PluginArgs
from kubesched.scheduler.config.schema import API_VERSION


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
