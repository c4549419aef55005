"""Following what is in an API server: list, then watch, through every kind of interruption.

    server ──▶ reflector ──▶ shared informer ──▶ handlers (put, remove; on_add, on_update, on_delete)
                                    └──▶ lister

`Informers` has one shared informer per kind; that is where to begin. `reflector` tells how one kind is followed,
`informer` what handlers can rely on. One thread, one asyncio task per kind, synchronous handlers: there is no queue of
deltas between reflector and informer (docs/concepts/list-watch.md says where its guarantees live).
"""

from kubesched.k8s.client.list_watch.exchange import ListOptions, Pace
from kubesched.k8s.client.list_watch.informer import (
    EventHandlerFuncs,
    IndexedLister,
    IndexFunction,
    InformerHandler,
    ResourceEventHandler,
    SharedInformer,
)
from kubesched.k8s.client.list_watch.informers import (
    Informers,
    InformerSettings,
    scheduler_informers,
    wait_for_cache_sync,
    wait_for_named_cache_sync,
)
from kubesched.k8s.client.list_watch.log_lines import WatchError, WatchErrorHandler, default_watch_error_handler

__all__ = [
    "EventHandlerFuncs",
    "IndexFunction",
    "IndexedLister",
    "InformerHandler",
    "InformerSettings",
    "Informers",
    "ListOptions",
    "Pace",
    "ResourceEventHandler",
    "SharedInformer",
    "WatchError",
    "WatchErrorHandler",
    "default_watch_error_handler",
    "scheduler_informers",
    "wait_for_cache_sync",
    "wait_for_named_cache_sync",
]
