"""The informers of a scheduler: all kinds that it looks at, and of pods only those that hold something or will.

Next: `kubesched.k8s.client.resources` for which kinds those are.
"""

from __future__ import annotations

from collections.abc import Iterable

from kubesched.k8s.client.list_watch.informers import Informers, InformerSettings
from kubesched.k8s.client.list_watch.pace import Pace
from kubesched.k8s.client.list_watch.requests import ListOptions, ListWatchApi
from kubesched.k8s.client.resources import RESOURCES, Resource
from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.stand_ins import stand_in_for

UNFINISHED_PODS = ListOptions(field_selector="status.phase!=Succeeded,status.phase!=Failed")
"""A pod that finishes looks deleted from here."""


def scheduler_informers(
    api: ListWatchApi, name: str, pace: Pace | None = None, more: Iterable[Resource] = ()
) -> Informers:
    """`name` is what the log calls them; `more` are further kinds."""
    settings = InformerSettings(narrowings={Pod: UNFINISHED_PODS}, stand_in=stand_in_for, name=name)
    return Informers(api, (*RESOURCES, *more), settings, pace)
