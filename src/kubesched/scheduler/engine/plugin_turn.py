"""A plugin's turn in Reserve, Permit, PreBind or Bind: told to whoever listens, and worded as the pod's event says
it."""

from __future__ import annotations

from kubesched.framework.pod_info import PodInfo
from kubesched.framework.status import OK, Status
from kubesched.scheduler.engine.observations import PluginBroke, PluginTurnBegan, PluginTurnEnded
from kubesched.scheduler.engine.plugin_call import PluginError
from kubesched.scheduler.engine.profile import Profile


def turn_began(profile: Profile, extension_point: str, plugin: str, pod: PodInfo, node_name: str) -> None:
    tell = profile.observers.steps
    if tell is not None:
        tell(PluginTurnBegan(extension_point, plugin, pod, node_name))


def turn_ended(
    profile: Profile, extension_point: str, plugin: str, pod: PodInfo, node_name: str, status: Status
) -> Status:
    """What the plugin answered, as the pod's event says it: a rejection as it is, any other failure as an error that
    names extension point and plugin."""
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
