"""How plugins are called: what they raise is caught here and nowhere else, and their turns are told.

An exception becomes a `PluginError` that names plugin and extension point. It ends the cycle; the loop and the other
pods go on. A rejection is a value and never comes this way. A turn in Reserve, Permit, PreBind or Bind is worded as the
pod's event says it.
"""

from __future__ import annotations

from kubesched.framework.pod_info import PodInfo
from kubesched.framework.results import MAX_NODE_SCORE, MIN_NODE_SCORE
from kubesched.framework.status import OK, InvalidScore, Status
from kubesched.k8s.errors import KubeschedError
from kubesched.scheduler.engine.observations import PluginBroke, PluginTurnBegan, PluginTurnEnded
from kubesched.scheduler.engine.profile import Profile


class PluginError(KubeschedError):
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


def turn_began(profile: Profile, extension_point: str, plugin: str, pod: PodInfo, node_name: str) -> None:
    tell = profile.observers.steps
    if tell is not None:
        tell(PluginTurnBegan(extension_point, plugin, pod, node_name))


def turn_ended(
    profile: Profile, extension_point: str, plugin: str, pod: PodInfo, node_name: str, status: Status
) -> Status:
    """What the plugin answered, as the pod's event says it: a rejection as it is, any other failure as an error that
    names extension point and plugin."""
    if status is OK and profile.observers.steps is None:  # as most are, and nobody listens
        return status
    is_failed = not (status is OK or status.is_success or status.is_rejected or status.is_skip or status.is_wait)
    observers = profile.observers
    tell = observers.trouble if is_failed else observers.steps
    if tell is not None:
        tell(PluginTurnEnded(extension_point, plugin, pod, node_name, status))
    if is_failed:
        return Status.error(f'running {extension_point} plugin "{plugin}": {status.message}').by(plugin)
    return status.by(plugin) if status.is_rejected else status


def broken_turn(profile: Profile, bug: PluginError, pod: PodInfo) -> Status:
    """The plugin broke: that is told, and is an error."""
    if profile.observers.trouble is not None:
        profile.observers.trouble(PluginBroke(bug, pod))
    return Status.error(bug.message).by(bug.plugin)
