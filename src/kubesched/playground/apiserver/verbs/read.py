"""Get and list: current objects or those of an older version, selected by labels and fields, and in pages.

Guarantees lists in the order of namespace and name; a page's continue token names the version, so that the following
pages show the same state. A version that is not reached yet is answered with 504 after three seconds, a forgotten one
with 410. ``watch.py`` goes on from a list's version.

Selectors of query strings become predicates on a stored object's labels or fields; those that cannot be read are
refused in the real server's words.
"""

from __future__ import annotations

import asyncio
import base64
import json
import posixpath
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kubesched.k8s.model.selectors import SelectorError, parse_selector
from kubesched.playground.apiserver.body_text import go_json_error
from kubesched.playground.apiserver.errors import StatusError, bad_request, expired, not_found, unclassified
from kubesched.playground.apiserver.go_text import json_kind, quoted
from kubesched.playground.apiserver.served_resource import ServedResource
from kubesched.playground.apiserver.storage.store import CompactedError, Stored
from kubesched.playground.apiserver.verbs import writing
from kubesched.playground.apiserver.verbs.request import (
    Api,
    Query,
    Target,
    integer,
    options_error,
    single,
    truth,
    version_error,
)

Matcher = Callable[[Mapping[str, str]], bool]

_SAYS_WHICH_KIND = "resource.k8s.io"
"""The group whose refusals of unknown fields name the kind."""


def parse_labels(text: str) -> Matcher | None:
    """The predicate of a label selector; None when it selects everything."""
    try:
        selector = parse_selector(text)
    except SelectorError as error:
        raise bad_request(str(error)) from None
    return None if selector.is_everything else selector.matches


def parse_fields(text: str, resource: ServedResource) -> Matcher | None:
    """The predicate of a field selector; None when it selects everything."""
    terms: list[tuple[str, bool, str]] = []
    for term in _split_fields(text):
        matched = re.match(r"([^=!]*?)(!=|==|=)(.*)", term, re.DOTALL)
        if matched is None:
            raise bad_request(f"invalid selector: '{text}'; can't understand '{term}'")
        if not matched[1] and not matched[3]:
            continue
        terms.append((matched[1], matched[2] != "!=", _unescape(matched[3])))
    if not terms:
        return None
    supported = resource.selectable_fields({"metadata": {"name": "", "namespace": ""}, "spec": {}, "status": {}})
    for name, _, _ in terms:
        if name not in supported:
            raise _unsupported_field(name, supported, resource)
    return lambda fields: all((fields.get(name, "") == value) is equal for name, equal, value in terms)


def _split_fields(text: str) -> list[str]:
    """The terms between commas that are not escaped by a backslash."""
    return [term for term in re.findall(r"(?:[^,\\]|\\.|\\$)+", text, re.DOTALL) if term]


def _unescape(value: str) -> str:
    """A value without its backslashes, which may stand only before a backslash, a comma or an equals sign."""
    if wrong := re.search(r"\\([^\\,=]|$)", re.sub(r"\\[\\,=]", "", value)):
        raise bad_request(f"invalid field selector: invalid escape sequence: {wrong[0]}")
    if bare := re.search(r"[,=]", re.sub(r"\\[\\,=]", "", value)):
        raise bad_request(f"invalid field selector: unescaped character in value: {ord(bare[0])}")
    return re.sub(r"\\([\\,=])", r"\1", value)


def _unsupported_field(name: str, supported: Mapping[str, str], resource: ServedResource) -> Exception:
    if resource.is_custom or set(supported) - {"metadata.name", "metadata.namespace"}:
        if resource.group == _SAYS_WHICH_KIND:
            what = f"{resource.api_version}, Kind={resource.kind}"
            return bad_request(f"field label not supported for {what}: {name}")
        return bad_request(f"field label not supported: {name}")
    return bad_request(f'"{name}" is not a known field selector: only "metadata.name", "metadata.namespace"')


_FUTURE_WAIT_S = 3.0
_ONE_NAME = re.compile(r"(?:^|,)metadata\.name==?[^=!,]+(?:,|$)")


@dataclass(frozen=True, slots=True)
class Selection:
    """What a list or watch selects."""

    labels: Matcher | None
    fields: Matcher | None
    view: ServedResource | None = None  # names the fields otherwise than the resource under which objects are stored

    def matches(self, stored: Stored) -> bool:
        if self.labels is not None and not self.labels(stored.labels):
            return False
        return self.fields is None or self.fields(self._fields_of(stored))

    def _fields_of(self, stored: Stored) -> Mapping[str, str]:
        if self.view is None:
            return stored.fields
        return self.view.selectable_fields(writing.load(self.view, stored))

    @property
    def is_everything(self) -> bool:
        return self.labels is None and self.fields is None


@dataclass(frozen=True, slots=True)
class ListPage:
    """The answer to a list."""

    items: Sequence[Stored]
    revision: int
    token: str = ""
    remaining: int | None = None


def selection(query: Query, target: Target) -> Selection:
    labels = parse_labels(single(query, "labelSelector"))
    fields = parse_fields(single(query, "fieldSelector"), target.resource)
    return Selection(labels, fields, target.resource if target.resource.from_stored else None)


async def get(api: Api, target: Target, query: Query) -> Stored:
    """One object, as it is now."""
    await _wait_for(api, version_of(query))
    stored = api.store.get(target.resource.storage_key, writing.key_of(target))
    await api.store.settle()  # after reading: what was read is durable before it is told
    if stored is None:
        raise not_found(target.resource, target.name)
    return stored


async def list_page(api: Api, target: Target, query: Query) -> ListPage:
    """One page of a collection, or all of it."""
    _check_options(query)
    chosen = selection(query, target)
    limit = max(integer(query, "limit") or 0, 0)
    if _ONE_NAME.search(single(query, "fieldSelector")):
        limit = 0  # there is no more than one
    is_cached = target.resource.storage_key != "events"
    if is_cached and single(query, "resourceVersion") == "0" and single(query, "resourceVersionMatch") != "Exact":
        limit = 0  # answered from a cache that has everything at hand
    integer(query, "timeoutSeconds")
    token = single(query, "continue")
    if token:
        return await _continued(api, target, query, chosen, limit, token)
    version = version_of(query, is_list=True)
    match = single(query, "resourceVersionMatch")
    await _wait_for(api, version)
    if version and (match == "Exact" or (limit and not match)):
        page = _cut(target, _state_at(api, target, version), chosen, limit, version)
    else:
        page = _cut(target, _now(api, target), chosen, limit, api.store.revision)
    await api.store.settle()
    return page


def version_of(query: Query, is_list: bool = False) -> int:
    """The resourceVersion of the query, 0 when there is none."""
    text = single(query, "resourceVersion")
    if text == "":
        return 0
    problem = version_error(text)
    if problem:
        message = f"resourceVersion: Invalid value: {quoted(text)}: {problem}"
        raise bad_request(f"invalid resource version: {message}") if is_list else unclassified(message)
    return int(text.lstrip("0") or "0")


def _now(api: Api, target: Target) -> Sequence[Stored]:
    return api.store.list(target.resource.storage_key, target.namespace)


def _state_at(api: Api, target: Target, version: int) -> Sequence[Stored]:
    try:
        return api.store.list_at(target.resource.storage_key, target.namespace, version)
    except CompactedError:
        raise expired("The resourceVersion for the provided list is too old.") from None


def _cut(
    target: Target, objects: Sequence[Stored], chosen: Selection, limit: int, revision: int, after: str = ""
) -> ListPage:
    """The page of the selected objects that come after the given key."""

    def position(stored: Stored) -> str:
        is_whole = bool(stored.key.namespace) and not target.namespace
        return f"{stored.key.namespace}/{stored.key.name}" if is_whole else stored.key.name

    rest = [stored for stored in objects if position(stored) >= after] if after else objects
    if not limit:
        return ListPage(rest if chosen.is_everything else [one for one in rest if chosen.matches(one)], revision)
    items: list[Stored] = []
    for n_read, stored in enumerate(rest, start=1):
        if chosen.is_everything or chosen.matches(stored):
            items.append(stored)
        if len(items) == limit and n_read < len(rest):
            # whether anything of the rest is selected, too, the next page will tell
            remaining = len(rest) - n_read if chosen.is_everything else None
            return ListPage(items, revision, _token(revision, f"/{position(stored)}\0"), remaining)
    return ListPage(items, revision)


def _token(revision: int, start: str) -> str:
    text = json.dumps({"v": "meta.k8s.io/v1", "rv": revision, "start": start}, separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _read_token(token: str) -> tuple[int, str]:
    wrong = "invalid continue token: continue key is not valid"
    illegal = re.search(r"[^A-Za-z0-9_-]", token)
    if illegal or len(token) % 4 == 1:
        place = illegal.start() if illegal else len(token) - 1
        raise bad_request(f"{wrong}: illegal base64 data at input byte {place}")
    text = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        raise bad_request(f"{wrong}: {go_json_error(text) or 'invalid character'}") from None
    problem = _token_error(content)
    if problem:
        raise bad_request(f"{wrong}: {problem}")
    return content["rv"], content["start"].removeprefix("/")


def _token_error(content: Any) -> str:
    """What is wrong with the content of a token."""
    if content is not None and not isinstance(content, dict):
        return f"json: cannot unmarshal {json_kind(content)} into Go value of type storage.continueToken"
    content = content or {}
    for name, form, go_type in (("v", str, "string"), ("rv", int, "int64"), ("start", str, "string")):
        value = content.get(name)
        if value is not None and (not isinstance(value, form) or isinstance(value, bool)):
            shown = f"number {value}" if isinstance(value, float) and form is int else json_kind(value)
            return f"json: cannot unmarshal {shown} into Go struct field continueToken.{name} of type {go_type}"
    if content.get("v") != "meta.k8s.io/v1":
        return f"server does not recognize this encoded version {content.get('v') or ''}"
    if not content.get("rv"):
        return "incorrect encoded start resourceVersion (version meta.k8s.io/v1)"
    start = content.get("start") or ""
    if not start:
        return "encoded start key empty (version meta.k8s.io/v1)"
    rooted = start if start.startswith("/") else f"/{start}"
    return "" if posixpath.normpath(rooted) == rooted and not rooted.startswith("//") else start


async def _continued(api: Api, target: Target, query: Query, chosen: Selection, limit: int, token: str) -> ListPage:
    if single(query, "resourceVersion") not in ("", "0"):
        raise bad_request("specifying resource version is not allowed when using continue")
    revision, start = _read_token(token)
    await _wait_for(api, revision)
    if revision < 0:
        page = _cut(target, _now(api, target), chosen, limit, api.store.revision, start)
        await api.store.settle()
        return page
    try:
        objects = api.store.list_at(target.resource.storage_key, target.namespace, revision)
    except CompactedError:
        raise _token_expired(f"/{start}") from None
    return _cut(target, objects, chosen, limit, revision, start)


def _token_expired(start: str) -> StatusError:
    """The version of the first page is forgotten; the token in the answer allows to go on at the newest version."""
    error = expired(
        "The provided continue parameter is too old to display a consistent list result. You can "
        "start a new list without the "
        "continue parameter, or use the continue token in this response to retrieve the remainder of "
        "the results. Continuing with "
        "the provided token results in an inconsistent list - objects that were created, modified, "
        "or deleted between the time the "
        "first chunk was returned and now may show up in the list."
    )
    error.continue_token = _token(-1, start)
    return error


async def _wait_for(api: Api, version: int) -> None:
    """A version from the future gets three seconds to arrive."""
    if version <= api.store.revision:
        return
    deadline = asyncio.get_running_loop().time() + _FUTURE_WAIT_S
    while asyncio.get_running_loop().time() < deadline:
        await asyncio.sleep(0.05)
        if version <= api.store.revision:
            return
    message = f"Timeout: Too large resource version: {version}, current: {api.store.revision}"
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    raise StatusError(504, "Timeout", message, {"causes": [cause], "retryAfterSeconds": 1})


def _check_options(query: Query) -> None:
    match, version = single(query, "resourceVersionMatch"), single(query, "resourceVersion")
    causes: list[tuple[str, str, str]] = []
    if match:
        causes = _match_causes(match, version, bool(single(query, "continue")))
    if truth(query, "sendInitialEvents") is not None:
        causes.append(
            ("FieldValueForbidden", "sendInitialEvents", "Forbidden: sendInitialEvents is forbidden for list")
        )
    if causes:
        raise options_error("ListOptions", causes)


def _match_causes(match: str, version: str, continued: bool) -> list[tuple[str, str, str]]:
    field, causes = "resourceVersionMatch", []
    if not version:
        causes.append("Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided")
    if continued:
        causes.append("Forbidden: resourceVersionMatch is forbidden when continue is provided")
    if match == "Exact" and version == "0":
        causes.append('Forbidden: resourceVersionMatch "exact" is forbidden for resourceVersion "0"')
    found = [("FieldValueForbidden", field, cause) for cause in causes]
    if match not in ("Exact", "NotOlderThan"):
        message = f'Unsupported value: "{match}": supported values: "Exact", "NotOlderThan", ""'
        found.append(("FieldValueNotSupported", field, message))
    return found
