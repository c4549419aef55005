"""Plugins from outside replaced in a loop that runs. The cluster, the queue and all bindings under way stay.

In-tree plugins stay the objects that they are: they know what is reserved and not yet written. Plugins from outside are
made anew. Nothing changes unless all of them can be.

Next: `build`, for how it all begins.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from kubesched.framework.extension_points import Plugin
from kubesched.framework.handle import Handle, Registry
from kubesched.scheduler.build import queue_profile
from kubesched.scheduler.config import KubeSchedulerConfiguration, resolve_profiles
from kubesched.scheduler.engine.loop import Scheduler
from kubesched.scheduler.engine.profile import Profile, build_profile
from kubesched.scheduler.plugins import registry as in_tree


def reload_plugins(
    loop: Scheduler, config: KubeSchedulerConfiguration, registry: Registry, now_s: float, source: str = ""
) -> None:
    """`config` is the one that the loop was built from, `registry` has the new plugins. Raises `ConfigError`, and then
    all is as before."""
    profiles: dict[str, Profile] = {}
    for resolved in resolve_profiles(config, in_tree.capabilities(registry), source):
        scheduler = loop.schedulers[resolved.scheduler_name]
        assert scheduler.handle is not None
        kept = _with_objects_of(scheduler.profile, registry)
        watch, observers = scheduler.profile.watch, scheduler.profile.observers
        profiles[resolved.scheduler_name] = build_profile(resolved, kept, scheduler.handle, watch, observers)
    has_extenders = bool(loop.extenders)
    queue_profiles = {name: queue_profile(profile, has_extenders=has_extenders) for name, profile in profiles.items()}
    for name, profile in profiles.items():
        loop.schedulers[name].take_profile(profile)
    loop.metrics.profiles_changed()
    loop.queue.take_profiles(queue_profiles, now_s)


def _with_objects_of(profile: Profile, registry: Registry) -> Registry:
    """The same plugins, of which those in-tree are the objects that the profile has."""
    known = {name: partial(_the_same, plugin) for name, plugin in profile.plugins.items() if name in in_tree.REGISTRY}
    return Registry({**registry, **known})


def _the_same(plugin: Plugin, _args: Any, _handle: Handle) -> Plugin:
    return plugin
