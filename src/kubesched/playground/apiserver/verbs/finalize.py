"""Finalize: the finalizers of a namespace are taken away; when none is left and it was being deleted, it is gone.

That is a controller's last word on a namespace. Every other field of the namespace stays.
"""

from __future__ import annotations

from kubesched.playground.apiserver.errors import bad_request, modified, not_found
from kubesched.playground.apiserver.served_resource import Object
from kubesched.playground.apiserver.storage.store import Stored
from kubesched.playground.apiserver.verbs import writing
from kubesched.playground.apiserver.verbs.request import Api, Target, WriteOptions


def finalize(api: Api, target: Target, new: Object, options: WriteOptions) -> Stored:
    """Writes ``spec.finalizers``; removes the namespace when nothing holds it."""
    before = api.store.get(target.resource.storage_key, writing.key_of(target))
    if before is None:
        raise not_found(target.resource, target.name)
    version = new["metadata"].get("resourceVersion", "")
    if version and version != str(before.revision):
        raise modified(target.resource, target.name)
    if new["metadata"].get("name", target.name) != target.name:
        raise bad_request(
            f"the name of the object ({new['metadata']['name']}) does not match the name on the URL ({target.name})"
        )
    obj = writing.load(target.resource, before)
    finalizers = (new.get("spec") or {}).get("finalizers") or []
    obj["spec"] = {"finalizers": finalizers} if finalizers else {}
    if finalizers or obj["metadata"].get("finalizers") or not obj["metadata"].get("deletionTimestamp"):
        return writing.save(api, target, obj, before, options)
    return writing.remove(api, target, obj, before, options)
