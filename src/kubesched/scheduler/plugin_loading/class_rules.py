"""What a plugin class has to be like, checked before it is used: better a line now than an error for every pod.

The methods that a plugin may have, and the parameters they are called with, are read off `framework.extension_points`
and `framework.caching`. What is wrong with a plugin from outside becomes an error as a configuration has them: where,
and what (`plugin_error`).

Next: `outside_plugins`, which holds only classes that passed; `checked_plugin` for what is checked at run time.
"""

from __future__ import annotations

import dataclasses
import inspect
import traceback
from collections.abc import Iterable, Iterator
from types import FunctionType
from typing import Any

from kubesched.framework import caching, extension_points
from kubesched.framework.caching import SCOPE_ATTRIBUTES, Scope
from kubesched.framework.extension_points import extension_points_of
from kubesched.scheduler.config.errors import ConfigError, FieldError


def _found() -> dict[str, inspect.Signature]:
    found: dict[str, inspect.Signature] = {}
    for contract in (extension_points, caching):
        for _, protocol in inspect.getmembers(contract, inspect.isclass):
            if protocol.__module__ == contract.__name__ and getattr(protocol, "_is_protocol", False):
                for name, member in vars(protocol).items():
                    if isinstance(member, FunctionType) and not name.startswith("_"):
                        found[name] = inspect.signature(member)
    return found


_SIGNATURES = _found()

METHODS: dict[str, tuple[str, ...]] = {
    **{name: tuple(signature.parameters)[1:] for name, signature in _SIGNATURES.items()},
    **{f"{attribute}_for": ("pod",) for attribute in caching.SCOPE_ATTRIBUTES},
}
"""By name, the parameters after `self`."""

YES_OR_NO = frozenset(name for name, signature in _SIGNATURES.items() if signature.return_annotation == "bool")
"""Methods that answer with a truth value."""

EXTENSION_POINT_METHODS: tuple[str, ...] = tuple(
    method for methods in extension_points.EXTENSION_POINTS.values() for method in methods
)
"""Having one of these makes a class a plugin."""

NEEDED_BY = {"add_pod": "remove_pod", "remove_pod": "add_pod", "normalize_score": "score"}
"""Methods that mean nothing without another one (`score` stands for both of its forms)."""


_MOST_ARGUMENTS = 2


def check_class(plugin: type, origin: str) -> None:
    """Raises `ConfigError` with all that is wrong with a class that should be a plugin."""
    found = [(_where(plugin, method), text) for method, text in _errors(plugin)]
    if found:
        raise plugin_errors(origin, found)


def missing_of_a_plugin(plugin: type) -> str:
    """What keeps a class from being a plugin at all; empty if it is one."""
    if not isinstance(_static(plugin, "name"), str):
        return "has no `name`"
    if not extension_points_of(plugin):
        return f"has no method of an extension point ({', '.join(EXTENSION_POINT_METHODS)})"
    return ""


def _errors(plugin: type) -> Iterator[tuple[str, str]]:
    """(method or empty, what is wrong) pairs."""
    if problem := missing_of_a_plugin(plugin):
        yield "", problem
        return
    name: str = plugin.name  # type: ignore[attr-defined]
    if not name or name == "*" or name != "".join(name.split()):
        yield "", f"name: {name!r} cannot be the name of a plugin"
    yield from _attribute_errors(plugin)
    yield from _constructor_errors(plugin)
    for method, given in METHODS.items():
        if method in SCOPE_ATTRIBUTES or not hasattr(plugin, method):
            continue
        if text := _method_error(plugin, method, given):
            yield method, text
    for method, other in NEEDED_BY.items():
        if hasattr(plugin, method) and not (hasattr(plugin, other) or hasattr(plugin, f"{other}_node")):
            yield method, f"without {other} it is never asked"


def _attribute_errors(plugin: type) -> Iterator[tuple[str, str]]:
    for attribute in SCOPE_ATTRIBUTES:
        scope = getattr(plugin, attribute, None)
        if scope is not None and not isinstance(scope, Scope):
            yield "", f"{attribute}: {scope!r} is not a Scope"
    args_type = getattr(plugin, "args_type", None)
    if args_type is not None and not (isinstance(args_type, type) and dataclasses.is_dataclass(args_type)):
        yield "", f"args_type: {args_type!r} is not a dataclass"
    weight = getattr(plugin, "default_weight", 1)
    if not isinstance(weight, int) or isinstance(weight, bool) or weight < 1:
        yield "", f"default_weight: {weight!r} is not a whole number above 0"


def _constructor_errors(plugin: type) -> Iterator[tuple[str, str]]:
    needed = [
        parameter
        for parameter in constructor_parameters(plugin)
        if parameter.default is parameter.empty and parameter.name not in ("args", "handle")
    ]
    positional = [parameter for parameter in needed if parameter.kind is not parameter.KEYWORD_ONLY]
    if len(positional) > _MOST_ARGUMENTS or len(positional) < len(needed):
        names = ", ".join(parameter.name for parameter in needed)
        yield "__init__", f"needs {names}; it is given args and handle at most"


def constructor_parameters(plugin: type) -> list[inspect.Parameter]:
    """Without `self`; none for a class that has no constructor of its own."""
    if plugin.__init__ is object.__init__:  # type: ignore[misc]
        return []
    variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    parameters = list(inspect.signature(plugin.__init__).parameters.values())[1:]  # type: ignore[misc]
    return [parameter for parameter in parameters if parameter.kind not in variable]


def _method_error(plugin: type, method: str, given: tuple[str, ...]) -> str:
    function: Any = getattr(plugin, method)
    if not callable(function):
        return "is not a method"
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        return "must not be async: nothing in the scheduler waits"
    if inspect.isgeneratorfunction(function) and method not in ("pre_bind", "bind", "events_to_register"):
        return "must return its answer, not yield"
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return ""
    is_static = isinstance(_static(plugin, method), staticmethod | classmethod)
    try:
        signature.bind(*([] if is_static else ["self"]), *given)
    except TypeError:
        own = ", ".join(list(signature.parameters)[0 if is_static else 1 :])
        return f"takes ({own}), but is called with {_listed(given)}"
    return ""


def _listed(given: tuple[str, ...]) -> str:
    return f"({', '.join(given)})" if given else "nothing"


def _static(plugin: type, attribute: str) -> object:
    return inspect.getattr_static(plugin, attribute, None)


def _where(plugin: type, method: str) -> str:
    """`line 7: MyPlugin.filter_node`, as exactly as it is known."""
    what = f"{plugin.__qualname__}.{method}" if method else plugin.__qualname__
    code = getattr(getattr(plugin, method, None), "__code__", None) if method else None
    return f"line {code.co_firstlineno}: {what}" if code is not None else what


def plugin_error(origin: str, text: str, where: str = "") -> ConfigError:
    """`origin` is the file, class or distribution."""
    return ConfigError([FieldError(where, text)], origin)


def plugin_errors(origin: str, texts: Iterable[tuple[str, str]]) -> ConfigError:
    """From (where, text) pairs."""
    return ConfigError([FieldError(where, text) for where, text in texts], origin)


def line_of(bug: BaseException, path: str) -> str:
    """`line 7`: where in this file an exception came from; empty if it did not pass through it."""
    if isinstance(bug, SyntaxError) and bug.filename == path:
        return f"line {bug.lineno}"
    lines = [frame.lineno for frame in traceback.extract_tb(bug.__traceback__) if frame.filename == path]
    return f"line {lines[-1]}" if lines else ""


def told(bug: BaseException) -> str:
    """`ValueError: no such thing`."""
    text = bug.msg if isinstance(bug, SyntaxError) else str(bug)
    return f"{type(bug).__name__}: {text}" if text else type(bug).__name__
