"""Patch: an object changed by a JSON patch, a merge patch, a strategic merge patch or a server-side apply.

Ends in the same checks as an update. An apply on a name that does not exist creates. The patches themselves are in
``patching/``.
"""

from __future__ import annotations

import json
from typing import Any

from kubesched.apiserver.api import Api
from kubesched.apiserver.errors import StatusError, bad_request, conflict, not_found
from kubesched.apiserver.kinds.kind import DecodeError, Object, ServedResource
from kubesched.apiserver.patching import json_patch, merge_patch, strategic
from kubesched.apiserver.patching.apply import apply as server_side_apply
from kubesched.apiserver.storage.store import Stored
from kubesched.apiserver.verbs import writing
from kubesched.apiserver.verbs.create import create
from kubesched.apiserver.verbs.request import Target, WriteOptions, options_error
from kubesched.apiserver.verbs.update import apply_update
from kubesched.apiserver.yaml_text import YamlTextError, load_yaml

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
PATCH_TYPES = (JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, APPLY_PATCH)


def patch(api: Api, target: Target, media_type: str, content: Any, options: WriteOptions) -> tuple[Stored, bool]:
    """Changes the object; True says that an apply created it."""
    check_patch_options(media_type, options)
    before = api.store.get(target.resource.storage_key, writing.key_of(target))
    if media_type == APPLY_PATCH:
        return _apply(api, target, content, before, options)
    if before is None:
        raise not_found(target.resource, target.name)
    old = _with_kind(target.resource, writing.load(target.resource, before))
    new = patched(old, media_type, content, target.resource)
    _check_patched_identity(target, new)
    _read_patched(target.resource, new, content, media_type, options)
    return apply_update(api, target, new, before, options), False


def check_patch_options(media_type: str, options: WriteOptions) -> None:
    """An apply names its manager; only an apply can be forced."""
    if media_type == APPLY_PATCH:
        if not options.has_manager:
            cause = ("FieldValueRequired", "fieldManager", "Required value: is required for apply patch")
            raise options_error("PatchOptions", [cause])
    elif options.force:
        raise options_error(
            "PatchOptions", [("FieldValueForbidden", "force", "Forbidden: may not be specified for non-apply patch")]
        )


def patched(old: Object, media_type: str, content: Any, resource: ServedResource) -> Object:
    """The object after a patch that is not an apply."""
    if media_type == JSON_PATCH:
        new = json_patch.apply(old, content)
    elif media_type == MERGE_PATCH:
        if not isinstance(content, dict):
            into = "Go value of type map[string]interface {}"
            raise bad_request(f"error decoding patch: json: cannot unmarshal {_go_word(content)} into {into}")
        new = merge_patch.apply(old, content)
    else:
        new = strategic.apply(old, content, resource)
    if not isinstance(new, dict) or not isinstance(new.get("metadata", {}), dict):
        raise bad_request(f"the patch does not leave a {resource.kind}")
    return new


def _go_word(value: object) -> str:
    return {list: "array", str: "string", bool: "bool", type(None): "null"}.get(type(value), "number")


def _with_kind(resource: ServedResource, obj: Object) -> Object:
    return {"apiVersion": resource.api_version, "kind": resource.kind, **obj}


def _check_patched_identity(target: Target, new: Object) -> None:
    """A patch cannot make it another object."""
    resource = target.resource
    kind, version = new.pop("kind", resource.kind), new.pop("apiVersion", resource.api_version)
    if kind != resource.kind or version != resource.api_version:
        raise bad_request(
            f"the API version in the data ({version}) does not match the expected API version ({resource.api_version})"
            if kind == resource.kind
            else f'no kind "{kind}" is registered for version "{version}" in scheme "pkg/api/legacyscheme/scheme.go:30"'
        )
    metadata = new.setdefault("metadata", {})
    if metadata.get("name") != target.name:
        raise bad_request(
            f"the name of the object ({metadata.get('name')}) does not match the name on the URL ({target.name})"
        )
    if resource.namespaced and metadata.get("namespace") != target.namespace:
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")


def _read_patched(resource: ServedResource, new: Object, content: Any, media_type: str, options: WriteOptions) -> None:
    """The schema's word on the patched object; told in the words of a patch."""
    shown = (
        _go_map(content)
        if media_type == STRATEGIC_PATCH
        else json.dumps(_with_kind(resource, new), separators=(",", ":"))
    )
    try:
        unknown = resource.decode(new)
    except DecodeError as error:
        raise _wrong_patch(shown, str(error)) from None
    findings = [f'unknown field "{path}"' for path in unknown]
    if findings and options.field_validation == "Strict":
        raise _wrong_patch(shown, f"strict decoding error: {', '.join(findings)}")
    if options.field_validation == "Warn":
        options.warnings.extend(findings)


def _wrong_patch(shown: str, why: str) -> StatusError:
    message = f"Invalid value: {json.dumps(shown, ensure_ascii=False)}: {why}"
    cause = {"reason": "FieldValueInvalid", "message": message, "field": "patch"}
    return StatusError(422, "Invalid", f' "" is invalid: patch: {message}', {"causes": [cause]})


def _go_map(value: Any) -> str:
    """A value as Go prints maps and slices."""
    if isinstance(value, dict):
        return "map[" + " ".join(f"{name}:{_go_map(value[name])}" for name in sorted(value)) + "]"
    if isinstance(value, list):
        return "[" + " ".join(_go_map(item) for item in value) + "]"
    if isinstance(value, bool):
        return str(value).lower()
    return "<nil>" if value is None else str(value)


def read_apply_body(data: bytes) -> Object:
    """The YAML (or JSON) of an apply."""
    try:
        content = load_yaml(data)
    except YamlTextError as error:
        raise bad_request(f"error decoding YAML: {error}") from None
    if not isinstance(content, dict):
        raise bad_request("error decoding YAML: the body is no object")
    return content


def _apply(
    api: Api, target: Target, content: Object, before: Stored | None, options: WriteOptions
) -> tuple[Stored, bool]:
    resource = target.resource
    _check_applied_identity(target, content)
    live = writing.load(resource, before) if before else None
    version = (
        content.get("metadata", {}).pop("resourceVersion", "") if isinstance(content.get("metadata"), dict) else ""
    )
    if before is None and target.subresource:
        raise not_found(resource, target.name)
    new = server_side_apply(live, content, resource, options.manager, options.force, api.now(), target.subresource)
    new.pop("kind", None)
    new.pop("apiVersion", None)
    writing.read_as_kind(resource, new, options, [])
    options.is_apply = True
    if before is None:
        new["metadata"].setdefault("name", target.name)
        return create(api, target, new, options), True
    if version and version != str(before.revision):
        why = "the object has been modified; please apply your changes to the latest version and try again"
        raise conflict(resource, target.name, why)
    new["metadata"].pop("resourceVersion", None)
    return apply_update(api, target, new, before, options), False


def _group_version_kind(content: Object) -> str:
    group, _, version = str(content.get("apiVersion") or "").rpartition("/")
    return f"{group}/{version}, Kind={content.get('kind') or ''}"


def _check_applied_identity(target: Target, content: Object) -> None:
    resource = target.resource
    if content.get("apiVersion") != resource.api_version or content.get("kind") != resource.kind:
        if content.get("kind") != resource.kind:
            raise bad_request(f"invalid object type: {_group_version_kind(content)}")
        versions = f"Specified patch version: {content.get('apiVersion')}, expected: {resource.api_version}"
        raise bad_request(f"Incorrect version specified in apply patch. {versions}")
    metadata = content.get("metadata") or {}
    if not isinstance(metadata, dict):
        raise bad_request("metadata must be an object")
    content["metadata"] = metadata
    if metadata.get("name", target.name) != target.name:
        raise bad_request(
            f"the name of the object ({metadata['name']}) does not match the name on the URL ({target.name})"
        )
