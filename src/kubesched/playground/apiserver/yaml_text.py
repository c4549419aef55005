"""YAML of requests and answers, with the real server's words for what cannot be read and its way of quoting.

JSON is read by the fast parser, being YAML too. Used for bodies and for server-side apply. Next: `kubernetes_yaml`.
"""

from __future__ import annotations

from typing import Any

import msgspec
import yaml

from kubesched.k8s.model.kubernetes_yaml import BODY_BOUNDS, NotJsonError, YamlBoundError, load_document, needs_quotes


class YamlTextError(ValueError):
    """The text is no YAML, or holds what JSON cannot hold."""


def load_yaml(data: bytes) -> Any:
    """The value of the first document."""
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    try:
        value = load_document(data, BODY_BOUNDS)
        return msgspec.json.decode(msgspec.json.encode(value))  # nothing is shared, whatever aliases repeat
    except YamlBoundError as error:
        raise YamlTextError(f"error converting YAML to JSON: yaml: {error.problem}") from None
    except NotJsonError as error:
        raise YamlTextError(str(error.problem)) from None
    except yaml.reader.ReaderError as error:
        raise YamlTextError(f"error converting YAML to JSON: yaml: {error.reason}") from None
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + isinstance(error, yaml.scanner.ScannerError) if error.problem_mark else 1
        raise YamlTextError(f"error converting YAML to JSON: yaml: line {line}: {error.problem}") from None
    except (yaml.YAMLError, msgspec.DecodeError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise YamlTextError(" ".join(str(error).split())) from None


class _ServerDumper(yaml.SafeDumper):
    """Quotes as the real server does: texts that would be read as something else in double quotes."""

    def ignore_aliases(self, _: Any) -> bool:
        return True


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    if "\n" in text:
        style: str | None = "|"
    else:
        style = '"' if needs_quotes(text) else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_ServerDumper.add_representer(str, _represent_text)


def dump_yaml(value: Any) -> bytes:
    """The value as YAML."""
    text: str = yaml.dump(value, Dumper=_ServerDumper, default_flow_style=False, allow_unicode=True, width=2**20)
    return text.encode()
