"""Following what is in an API server: list, then watch, through every kind of interruption.

    server ──▶ reflector ──▶ deltas ──▶ informer ──▶ handlers (put, remove)
                                           └──▶ lister

`Informers` has one shared informer per kind; that is where to begin. `reflector` tells how one kind is followed,
`informer` what handlers can rely on. One thread, one asyncio task per kind, synchronous handlers.
"""

from kubesched.client.list_watch.informer import InformerHandler, SharedInformer
from kubesched.client.list_watch.informers import Informers, InformerSettings
from kubesched.client.list_watch.lister import IndexedLister, IndexFunction
from kubesched.client.list_watch.pace import Pace
from kubesched.client.list_watch.sync import wait_for_cache_sync, wait_for_named_cache_sync

__all__ = [
    "IndexFunction",
    "IndexedLister",
    "InformerHandler",
    "InformerSettings",
    "Informers",
    "Pace",
    "SharedInformer",
    "wait_for_cache_sync",
    "wait_for_named_cache_sync",
]
