"""YAML as Kubernetes reads it: JSON's types only, with the words that YAML 1.1 takes for booleans.

Times stay text, keys become text. JSON is read by the fast parser, being YAML too. Used for bodies and for
server-side apply.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec
import yaml

from kubesched.k8s.model.bounded_yaml import BODY_BOUNDS, YamlBoundError, load_document
from kubesched.playground.apiserver.repeated_fields import Repeated, repeated_in_yaml


class YamlTextError(ValueError):
    """The text is no YAML, or holds what JSON cannot hold."""


class _KubernetesLoader(yaml.CSafeLoader):
    """The safe loader without times, and with y and n as booleans."""


_KubernetesLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_KubernetesLoader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(r"^(?:y|Y|n|N)$"), list("yYnN"))
_KubernetesLoader.bool_values = {**yaml.SafeLoader.bool_values, "y": True, "n": False}


def load_yaml(data: bytes) -> Any:
    """The value of the first document."""
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    try:
        value = load_document(data, _KubernetesLoader, BODY_BOUNDS)
        return msgspec.json.decode(msgspec.json.encode(_plain(value)))
    except YamlBoundError as error:
        raise YamlTextError(f"error converting YAML to JSON: yaml: {error.problem}") from None
    except yaml.reader.ReaderError as error:
        raise YamlTextError(f"error converting YAML to JSON: yaml: {error.reason}") from None
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + isinstance(error, yaml.scanner.ScannerError) if error.problem_mark else 1
        raise YamlTextError(f"error converting YAML to JSON: yaml: line {line}: {error.problem}") from None
    except (yaml.YAMLError, msgspec.DecodeError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise YamlTextError(" ".join(str(error).split())) from None


def repeated_in_yaml_text(data: bytes) -> Repeated:
    """What the text, which ``load_yaml`` could read, gives twice."""
    return repeated_in_yaml(data, _KubernetesLoader)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {_key(name): _plain(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if value is None or isinstance(value, str | int | float):
        return value
    raise TypeError(f"YAML holds a {type(value).__name__}, which JSON has not")


def _key(name: Any) -> str:
    if isinstance(name, bool):
        return "true" if name else "false"
    if isinstance(name, str | int | float):
        return str(name)
    raise TypeError("YAML has a key that is no text")


class _KubernetesDumper(yaml.SafeDumper):
    """Quotes as the real server does: texts that would be read as something else in double quotes."""

    def ignore_aliases(self, _: Any) -> bool:
        return True


_WORDS = frozenset(("y", "Y", "n", "N", "yes", "Yes", "YES", "no", "No", "NO", "on", "On", "ON", "off", "Off", "OFF"))


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    if "\n" in text:
        style: str | None = "|"
    else:
        tag: str = dumper.resolve(yaml.ScalarNode, text, (True, False))  # type: ignore[no-untyped-call]
        is_text = tag in ("tag:yaml.org,2002:str", "tag:yaml.org,2002:yaml")
        style = None if is_text and text not in _WORDS else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_KubernetesDumper.add_representer(str, _represent_text)


def dump_yaml(value: Any) -> bytes:
    """The value as YAML."""
    text: str = yaml.dump(value, Dumper=_KubernetesDumper, default_flow_style=False, allow_unicode=True, width=2**20)
    return text.encode()
