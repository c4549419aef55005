"""From the text of a file to plain values: YAML or JSON, with every key that occurs twice.

YAML is read as Kubernetes reads it. Only the first document of a stream counts. Text that opens with a brace is JSON.

Next: `kubernetes_yaml` for the rules of YAML, `decode`, which makes structs of the values.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import yaml

from kubesched.k8s.model.kubernetes_yaml import BROKEN_VALUES, KubernetesLoader, check_bounds, in_one_line
from kubesched.scheduler.config.errors import ConfigError, ErrorList, FieldError


def parse(data: bytes | str, source: str, errors: ErrorList) -> Any:
    """The value that a text stands for. Repeated keys go to `errors`; text that is no YAML raises `ConfigError`."""
    try:
        text = data.decode() if isinstance(data, bytes) else data
        return _parse_json(text, errors) if text.lstrip().startswith("{") else _parse_yaml(text, errors)
    except UnicodeDecodeError as error:
        problem = FieldError("", f"not UTF-8: byte {error.start} is {error.object[error.start]:#04x}")
    except json.JSONDecodeError as error:
        problem = FieldError("", f"line {error.lineno}, column {error.colno}: {error.msg}")
    except yaml.YAMLError as error:
        problem = FieldError("", _yaml_problem(error))
    except RecursionError:
        problem = FieldError("", "nested too deeply")
    except BROKEN_VALUES as error:
        problem = FieldError("", in_one_line(error))
    raise ConfigError([problem], source)


def join(path: str, name: str) -> str:
    """The path of a field below another path."""
    return f"{path}.{name}" if path else name


# -- JSON --------------------------------------------------------------------------------------------------------------


class _JsonObject(dict[str, Any]):
    """An object that remembers which of its keys were given more than once."""

    repeated: tuple[str, ...] = ()


def _json_object(pairs: list[tuple[str, Any]]) -> _JsonObject:
    found = _JsonObject(pairs)
    counts = Counter(key for key, _ in pairs)
    found.repeated = tuple(key for key, count in counts.items() if count > 1)
    return found


def _refuse_constant(name: str) -> Any:
    raise json.JSONDecodeError(f"{name} is not a JSON value", name, 0)


def _parse_json(text: str, errors: ErrorList) -> Any:
    value = json.loads(text, object_pairs_hook=_json_object, parse_constant=_refuse_constant)
    return _checked_json(value, "", errors)


def _checked_json(value: Any, path: str, errors: ErrorList) -> Any:
    if isinstance(value, _JsonObject):
        for key in value.repeated:
            errors.add(join(path, key), f'duplicate field "{key}"')
        return {key: _checked_json(item, join(path, key), errors) for key, item in value.items()}
    if isinstance(value, list):
        return [_checked_json(item, f"{path}[{index}]", errors) for index, item in enumerate(value)]
    return value


# -- YAML --------------------------------------------------------------------------------------------------------------


def _parse_yaml(text: str, errors: ErrorList) -> Any:
    check_bounds(text)
    loader = KubernetesLoader(text)
    try:
        node = loader.get_node() if loader.check_node() else None
        if node is None:
            return None
        _find_repeated_keys(node, "", errors, visited=set())
        return loader.construct_document(node)
    finally:
        loader.dispose()


def _find_repeated_keys(node: yaml.Node, path: str, errors: ErrorList, visited: set[int]) -> None:
    """Walk the tree of nodes: once constructed, a mapping has forgotten what was overwritten."""
    if id(node) in visited:
        return
    visited.add(id(node))
    if isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            _find_repeated_keys(item, f"{path}[{index}]", errors, visited)
    elif isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, item in node.value:
            name = str(key.value)
            if name in seen:
                errors.add(join(path, name), f'duplicate field "{name}" (line {key.start_mark.line + 1})')
            seen.add(name)
            _find_repeated_keys(item, join(path, name), errors, visited)


def _yaml_problem(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or str(error)
    return f"line {mark.line + 1}, column {mark.column + 1}: {problem}" if mark else problem
