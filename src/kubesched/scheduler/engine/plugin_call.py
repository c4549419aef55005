"""The one place where a plugin's exception is caught: it becomes a `PluginError` that names plugin and extension point.

A rejection is a value and never comes this way. The error ends the cycle; the loop and the other pods go on.
"""

from __future__ import annotations

from kubesched.framework.plugin_fault import InvalidScore
from kubesched.framework.scores import MAX_NODE_SCORE, MIN_NODE_SCORE


class PluginError(Exception):
    """A plugin broke. The text is what the pod's event says."""

    def __init__(self, plugin: str, message: str) -> None:
        super().__init__(message)
        self.plugin = plugin
        self.message = message


class SearchError(Exception):
    """The search for a node ended in an error, and no plugin broke. The text is what the pod's event says."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


def blamed(bug: Exception, plugin: str, doing: str) -> PluginError:
    """What a plugin raised, as the error that names it; `{}` in `doing` stands for the plugin's name.

    For loops that stand on the path of every pod, where a `with` per plugin would show.
    """
    if isinstance(bug, PluginError):
        return bug
    if isinstance(bug, InvalidScore):
        return invalid_score(plugin, bug.score)
    return PluginError(plugin, f"{doing.format(plugin)}: {str(bug) or type(bug).__name__}")


def invalid_score(plugin: str, score: int) -> PluginError:
    return PluginError(
        plugin,
        f'applying score defaultWeights on Score plugins: plugin "{plugin}" returns an invalid score {score}, '
        f"it should in the range of [{MIN_NODE_SCORE}, {MAX_NODE_SCORE}] after normalizing",
    )


class guarded:  # noqa: N801  reads as a verb where it stands: `with guarded(...)`
    """Names the plugin in whatever is raised inside."""

    __slots__ = ("_doing", "_plugin")

    def __init__(self, plugin: str, doing: str) -> None:
        """`doing` words what broke; `{}` stands for the plugin's name."""
        self._plugin = plugin
        self._doing = doing

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, bug: BaseException | None, trace: object) -> None:
        if isinstance(bug, Exception) and not isinstance(bug, PluginError):
            raise blamed(bug, self._plugin, self._doing) from bug
