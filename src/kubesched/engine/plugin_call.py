"""The one place where a plugin's exception is caught: it becomes a `PluginError` that names plugin and stage.

A rejection is a value and never comes this way. The error ends the cycle; the loop and the other pods go on.
"""

from __future__ import annotations


class PluginError(Exception):
    """A plugin broke. The text is what the pod's event says."""

    def __init__(self, plugin: str, message: str) -> None:
        super().__init__(message)
        self.plugin = plugin
        self.message = message


class guarded:  # noqa: N801  reads as a verb where it stands: `with guarded(...)`
    """Names the plugin in whatever is raised inside. A class, because it stands on the path of every decision."""

    __slots__ = ("_doing", "_plugin")

    def __init__(self, plugin: str, doing: str) -> None:
        """`doing` words what broke; `{}` stands for the plugin's name."""
        self._plugin = plugin
        self._doing = doing

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, bug: BaseException | None, trace: object) -> None:
        if isinstance(bug, Exception) and not isinstance(bug, PluginError):
            doing = self._doing.format(self._plugin)
            raise PluginError(self._plugin, f"{doing}: {str(bug) or type(bug).__name__}") from bug
