"""Get and list of the scripted server, with limit and continue."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from harness.scripted_server.answers import RefusalError, not_found
from harness.scripted_server.routing import Address
from harness.scripted_server.selection import Stored, selection
from harness.scripted_server.storage import StoredItem, VersionedStorage


class Reading:
    """Answers without changing anything. Remembers the rest of a list that was asked for in pages."""

    def __init__(self, storage: VersionedStorage) -> None:
        self._storage = storage
        self._rests: dict[str, tuple[int, list[StoredItem]]] = {}

    def get(self, address: Address) -> bytes:
        found = self._storage.get(address.served.resource, address.key)
        if found is None:
            raise not_found(address.served.resource, str(address.name))
        return msgspec.json.encode(found)

    def list_page(self, address: Address, query: Mapping[str, str]) -> bytes:
        """A page; of a list from the cache (version 0), as on a real server, always the whole."""
        revision, items = self._asked_for(address, query)
        limit = int(query.get("limit") or 0)
        rest: list[StoredItem] = []
        if limit and query.get("resourceVersion", "") != "0":
            items, rest = items[:limit], items[limit:]
        metadata: dict[str, object] = {"resourceVersion": str(revision)}
        if rest:
            metadata["continue"] = self._remember(revision, rest)
            metadata["remainingItemCount"] = len(rest)
        served = address.served
        head = {"kind": f"{served.kind}List", "apiVersion": served.api_version, "metadata": metadata}
        body = b",".join([stored.encoded for stored in items])
        return b'%b,"items":[%b]}' % (msgspec.json.encode(head)[:-1], body)

    def forget(self) -> None:
        """No list can be continued any more."""
        self._rests.clear()

    def _asked_for(self, address: Address, query: Mapping[str, str]) -> tuple[int, list[StoredItem]]:
        if token := query.get("continue"):
            if token not in self._rests:
                raise RefusalError(
                    410, "The provided continue parameter is too old to display a consistent list result."
                )
            return self._rests.pop(token)
        self._check_version(query.get("resourceVersion", ""))
        return self._storage.revision, self._matching(address, query)

    def selected(self, address: Address, query: Mapping[str, str]) -> list[Stored]:
        return [stored.item for stored in self._matching(address, query)]

    def _matching(self, address: Address, query: Mapping[str, str]) -> list[StoredItem]:
        items = self._storage.items(address.served.resource)
        matches = selection(query, address.namespace)
        return items if matches is None else [stored for stored in items if matches(stored.item)]

    def _check_version(self, asked: str) -> None:
        now = self._storage.revision
        if asked and int(asked) > now:
            cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
            message = f"Too large resource version: {asked}, current: {now}"
            raise RefusalError(504, f"Timeout: {message}", retry_after_s=1, causes=(cause,))

    def _remember(self, revision: int, rest: list[StoredItem]) -> str:
        token = f"{revision}-{rest[0].revision}-{len(rest)}"
        self._rests[token] = (revision, rest)
        return token
