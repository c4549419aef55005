"""Acting as somebody else: which of the ways to be allowed that applies, and who the user then is.

As in Kubernetes v1.36 there are two kinds of permission. The old one, ``impersonate`` on users, groups, service
accounts, uids and userextras, allows every request as that user. The constrained ones also name what may be done:
``impersonate:<mode>`` on whom and ``impersonate-on:<mode>:<verb>`` on what, for the modes ``associated-node``,
``arbitrary-node``, ``serviceaccount`` and ``user-info``. Every header is authorized: name, uid, each group and each
value of extra. A refusal is told in the words of the way that worked for this user last, or else of the first.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace

import msgspec

from kubesched.playground.apiserver.errors import StatusError
from kubesched.playground.apiserver.kinds import field_errors as errors
from kubesched.playground.apiserver.kinds.field_errors import dns_label_errors, dns_subdomain_errors
from kubesched.playground.apiserver.served_resource import InvalidField
from kubesched.playground.apiserver.verbs.authorization import Action, RbacAuthorizer, forbidden_action
from kubesched.playground.apiserver.verbs.request import RequestUser

_AUTHENTICATION = "authentication.k8s.io"
_NODE_PREFIX = "system:node:"
_NODE_NAME_KEY = "authentication.kubernetes.io/node-name"
_HTTP_PATH = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+"
_MANY = 4  # from so many groups or values on, one question about all of them is asked first
_MOST_REMEMBERED = 10_000


@dataclass(frozen=True)
class Mode:
    """One way to be allowed; ``applies`` says whether it can be used for (wanted, asking)."""

    name: str
    applies: Callable[[RequestUser, RequestUser], bool]

    @property
    def is_constrained(self) -> bool:
        return bool(self.name)

    @property
    def verb(self) -> str:
        return f"impersonate:{self.name}" if self.name else "impersonate"


class Impersonation:
    """Decides for one API who may be whom."""

    def __init__(self, authorizer: RbacAuthorizer) -> None:
        self._authorizer = authorizer
        self._last_mode: OrderedDict[str, Mode] = OrderedDict()

    def become(self, asking: RequestUser, wanted: RequestUser, action: Action) -> RequestUser:
        """The user that the request goes on as. Raises StatusError when no way is allowed."""
        last = self._last_mode.get(asking.name)
        modes = _MODES if last is None else (last, *(mode for mode in _MODES if mode is not last))
        refusal: StatusError | None = None
        for mode in modes:
            if not mode.applies(wanted, asking):
                continue
            try:
                became = self._through(mode, asking, wanted, action)
            except StatusError as error:
                refusal = refusal or error
                continue
            self._remember(asking.name, mode)
            return became
        assert refusal is not None, "the old way applies always"
        raise refusal

    def _remember(self, name: str, mode: Mode) -> None:
        self._last_mode[name] = mode
        self._last_mode.move_to_end(name)
        if len(self._last_mode) > _MOST_REMEMBERED:
            self._last_mode.popitem(last=False)

    def _through(self, mode: Mode, asking: RequestUser, wanted: RequestUser, action: Action) -> RequestUser:
        if mode.is_constrained:
            on = msgspec.structs.replace(action, verb=f"impersonate-on:{mode.name}:{action.verb}")
            self._require(asking, on)
        groups = self._name(mode, asking, wanted)
        if wanted.uid:
            self._require(asking, Action(mode.verb, _AUTHENTICATION, "uids", name=wanted.uid))
        self._groups(mode, asking, wanted.groups)
        self._extra(mode, asking, wanted)
        return replace(wanted, groups=_with_login_group(wanted.name, groups))

    def _name(self, mode: Mode, asking: RequestUser, wanted: RequestUser) -> tuple[str, ...]:
        """Authorizes the name; gives the groups that go with it."""
        core = _AUTHENTICATION if mode.is_constrained else ""
        node, account = _node_of(wanted.name), _account_of(wanted.name)
        if mode.is_constrained and node:
            name = "*" if mode is _ASSOCIATED_NODE else node
            self._require(asking, Action(mode.verb, core, "nodes", name=name))
            return ("system:nodes",)
        if account is None:
            self._require(asking, Action(mode.verb, core, "users", name=wanted.name))
            return wanted.groups
        namespace, name = account
        self._require(asking, Action(mode.verb, core, "serviceaccounts", namespace=namespace, name=name))
        return wanted.groups or ("system:serviceaccounts", f"system:serviceaccounts:{namespace}")

    def _groups(self, mode: Mode, asking: RequestUser, groups: tuple[str, ...]) -> None:
        core = _AUTHENTICATION if mode.is_constrained else ""
        group = Action(mode.verb, core, "groups")
        if mode.is_constrained:
            if "" in groups:
                raise forbidden_action(asking, group, "impersonating the empty string group is not allowed")
            if "system:masters" in groups:
                named = msgspec.structs.replace(group, name="system:masters")
                raise forbidden_action(asking, named, "impersonating the system:masters group is not allowed")
            if len(groups) >= _MANY and self._may(asking, msgspec.structs.replace(group, name="*")):
                return
        for name in groups:
            self._require(asking, msgspec.structs.replace(group, name=name))

    def _extra(self, mode: Mode, asking: RequestUser, wanted: RequestUser) -> None:
        extra = Action(mode.verb, _AUTHENTICATION, "userextras")
        if mode.is_constrained:
            wrong = _wrong_extra(wanted)
            if wrong:
                raise forbidden_action(asking, extra, wrong)
            is_large = len(wanted.extra) >= _MANY or sum(map(len, wanted.extra.values())) >= _MANY
            if is_large and self._may(asking, msgspec.structs.replace(extra, subresource="*", name="*")):
                return
        for key, values in wanted.extra.items():
            for value in values:
                self._require(asking, msgspec.structs.replace(extra, subresource=key, name=value))

    def _may(self, asking: RequestUser, action: Action) -> bool:
        return self._authorizer.decide(asking, action).allowed

    def _require(self, asking: RequestUser, action: Action) -> None:
        verdict = self._authorizer.decide(asking, action)
        if not verdict.allowed:
            raise forbidden_action(asking, action, verdict.reason)


def _node_of(name: str) -> str:
    """The node that a user name stands for, or ""."""
    node = name.removeprefix(_NODE_PREFIX)
    return node if node != name and not dns_subdomain_errors(node) else ""


def _account_of(name: str) -> tuple[str, str] | None:
    """Namespace and name of the service account that a user name stands for."""
    parts = name.split(":")
    if len(parts) != 4 or parts[:2] != ["system", "serviceaccount"]:
        return None
    return None if dns_label_errors(parts[2]) or dns_subdomain_errors(parts[3]) else (parts[2], parts[3])


def _only_a_name(wanted: RequestUser) -> bool:
    return not (wanted.uid or wanted.groups or wanted.extra)


def _is_own_node(wanted: RequestUser, asking: RequestUser) -> bool:
    node = _node_of(wanted.name)
    is_account = _account_of(asking.name) is not None
    return bool(node) and _only_a_name(wanted) and is_account and asking.extra.get(_NODE_NAME_KEY) == [node]


def _is_neither_node_nor_account(wanted: RequestUser, _: RequestUser) -> bool:
    return not _node_of(wanted.name) and _account_of(wanted.name) is None


_ASSOCIATED_NODE = Mode("associated-node", _is_own_node)
_MODES = (
    _ASSOCIATED_NODE,
    Mode("arbitrary-node", lambda wanted, _: _only_a_name(wanted) and bool(_node_of(wanted.name))),
    Mode("serviceaccount", lambda wanted, _: _only_a_name(wanted) and _account_of(wanted.name) is not None),
    Mode("user-info", _is_neither_node_nor_account),
    Mode("", lambda *_: True),
)


def _with_login_group(name: str, groups: tuple[str, ...]) -> tuple[str, ...]:
    """Everybody is either authenticated or not; who asks to be neither is the first."""
    if name == "system:anonymous":
        return groups if "system:unauthenticated" in groups else (*groups, "system:unauthenticated")
    has_one = "system:authenticated" in groups or "system:unauthenticated" in groups
    return groups if has_one else (*groups, "system:authenticated")


def _wrong_extra(wanted: RequestUser) -> str:
    """What the constrained modes do not let through in extra."""
    for key, values in wanted.extra.items():
        if not key:
            return "impersonating the empty string key in extra is not allowed"
        wrong = _domain_prefixed_path_errors(key, "extra.key")
        if wrong:
            texts = [f"{one.field}: {one.message}" for one in wrong]
            listed = texts[0] if len(texts) == 1 else "[" + ", ".join(texts) + "]"
            return f"impersonating an invalid key in extra is not allowed: {listed}"
        if "" in values:
            return "impersonating the empty string value in extra is not allowed"
    return ""


def _domain_prefixed_path_errors(text: str, at: str) -> list[InvalidField]:
    host, _, path = text.partition("/")
    if not host or not path:
        return [errors.invalid(at, text, 'must be a domain-prefixed path (such as "acme.io/foo")')]
    found = errors.all_invalid(at, host, dns_subdomain_errors(host))
    if not re.fullmatch(_HTTP_PATH, path):
        found.append(errors.invalid(at, path, f"Invalid path (regex used for validation is '{_HTTP_PATH}')"))
    return found
