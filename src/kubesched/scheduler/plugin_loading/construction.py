"""From a plugin's class and its arguments in the configuration to the plugin.

Next: `args_decoding` for the arguments.
"""

from __future__ import annotations

from typing import Any

from kubesched.framework.handle import Handle
from kubesched.scheduler.config.errors import ConfigError, ErrorList
from kubesched.scheduler.plugin_loading.args_decoding import decode_args
from kubesched.scheduler.plugin_loading.class_rules import constructor_parameters
from kubesched.scheduler.plugin_loading.plugin_errors import line_of, plugin_error, told


def decoded_args(plugin: type, args: Any, origin: str) -> Any:
    """What the plugin is given for what the configuration has for it. Raises `ConfigError`."""
    errors = ErrorList()
    decoded = decode_args(plugin, args, "args", errors)
    if errors:
        raise ConfigError(errors, origin)
    return decoded


def construct(plugin: type, decoded: Any, handle: Handle, origin: str) -> Any:
    """Gives the constructor what it asks for. What it raises is a `ConfigError` that names the plugin."""
    given: dict[str, Any] = {}
    to_give = [("args", decoded), ("handle", handle)]
    for parameter in constructor_parameters(plugin):
        by_name = next((pair for pair in to_give if pair[0] == parameter.name), None)
        if by_name is None and parameter.default is not parameter.empty:
            continue
        chosen = by_name or to_give[0]
        to_give.remove(chosen)
        given[parameter.name] = chosen[1]
    try:
        return plugin(**given)
    except (Exception, SystemExit) as bug:
        name: str = plugin.name  # type: ignore[attr-defined]
        raise plugin_error(origin, f'initializing plugin "{name}": {told(bug)}', line_of(bug, origin)) from bug
