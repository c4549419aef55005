"""Quotas of a namespace: what would exceed one is refused, what is admitted is added to its ``status.used``.

A controller says what is used at first and gives back what is deleted; here it only grows. Between ``charges_of`` and
``charge`` nobody else writes, so there is nothing to lock and nothing to try again. ``create.py`` and ``update.py``
call this last before they store.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kubesched.k8s.model import quantity
from kubesched.k8s.model import quota_usage as rules
from kubesched.k8s.model.requests import Amounts
from kubesched.playground.apiserver.errors import StatusError, forbidden
from kubesched.playground.apiserver.patching.apply import record
from kubesched.playground.apiserver.served_resource import Object
from kubesched.playground.apiserver.storage.store import Stored
from kubesched.playground.apiserver.verbs.api import Api, decode_stored
from kubesched.playground.apiserver.verbs.request import Target, WriteOptions

_QUOTAS = "resourcequotas"
_MANAGER = "kube-apiserver"


@dataclass(frozen=True, slots=True)
class Charge:
    """A quota as it will be when the object is stored."""

    before: Stored
    used: Amounts


def charges_of(api: Api, target: Target, new: Object, old: Object | None) -> list[Charge]:
    """What storing the object adds to the quotas of its namespace. Raises StatusError when one would be exceeded."""
    quotas = api.store.list(_QUOTAS, target.namespace) if target.resource.namespaced else ()
    if not quotas or not _is_looked_at(target, new, old):
        return []
    of, now = target.resource.group_resource, api.clock()
    taken = rules.usage(of, new, now)
    had = rules.usage(of, old, now) if old is not None else {}
    found: list[Charge] = []
    for stored in quotas:
        quota = decode_stored(stored)
        hard, used = (_amounts((quota.get("status") or {}).get(name)) for name in ("hard", "used"))
        names = rules.counted_names(of, hard)
        selectors = rules.scope_selectors(quota["spec"])
        if not names or not rules.is_in_scope(of, selectors, new):
            continue
        _refuse_uncountable(target, new, stored.key.name, names, used)
        more = taken
        if old is not None and rules.is_in_scope(of, selectors, old):
            more = {name: amount - had[name] if name in had else amount for name, amount in taken.items()}
        more = {name: amount for name, amount in more.items() if name in hard and amount.nanos > 0}
        if more:
            raised = used | {name: used.get(name, _NOTHING) + amount for name, amount in more.items()}
            if target.subresource != "status" and (why := rules.exceeded(stored.key.name, more, used, hard)):
                raise _refused(target, new, why)
            found.append(Charge(stored, raised))
    return found


def charge(api: Api, charges: Iterable[Charge], options: WriteOptions) -> None:
    """Writes what the quotas are charged with."""
    resource = api.resource_of(_QUOTAS)
    assert resource is not None
    for one in () if options.dry_run else charges:
        quota, before, now = decode_stored(one.before), decode_stored(one.before), api.now()
        quota["status"]["used"] = {name: str(one.used[name]) for name in sorted(one.used)}
        record(quota, before, resource, _MANAGER, "status", now)
        api.store.put(_QUOTAS, one.before.key, quota, resource.selectable_fields, one.before.revision)


_NOTHING = quantity.from_int(0)


def _is_looked_at(target: Target, new: Object, old: Object | None) -> bool:
    """Most kinds count when they are created; some can come to take more later."""
    of, through = target.resource.group_resource, target.subresource
    if of in rules.NEVER_COUNTED:
        return False
    if old is None:
        return not through
    if of == rules.PODS:
        is_moved = not through and rules.is_terminating(new) != rules.is_terminating(old)
        return is_moved or through == "resize"
    if of == rules.CLAIMS and through == "status":
        return _allocated(new) != _allocated(old) or rules.attribute_classes(new) != rules.attribute_classes(old)
    return not through and of in (rules.SERVICES, rules.CLAIMS, rules.DEVICE_CLAIMS)


def _allocated(claim: Object) -> object:
    return ((claim.get("status") or {}).get("allocatedResources") or {}).get("storage")


def _refuse_uncountable(target: Target, obj: Object, quota: str, names: list[str], used: Amounts) -> None:
    """Nothing is admitted under a quota that does not know what is used, or whose measure the object leaves out."""
    if why := rules.uncountable(target.resource.group_resource, quota, names, obj):
        raise _refused(target, obj, why)
    if any(name not in used for name in names):
        listed = ",".join(sorted(names))
        raise _refused(target, obj, f"status unknown for quota: {quota}, resources: {listed}")


def _refused(target: Target, obj: Object, why: str) -> StatusError:
    return forbidden(target.resource, obj["metadata"].get("name", ""), why)


def _amounts(given: object) -> Amounts:
    return {name: quantity.parse(text) for name, text in given.items()} if isinstance(given, dict) else {}
