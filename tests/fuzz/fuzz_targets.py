"""Every parser that strangers can feed, as a function of bytes: it answers, or raises the error that it documents.

Anything else it raises is a bug. What it does must be bounded, too: `run_fuzz.py` stops an input after a while, and
calls that a bug as well.
"""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from kubesched.k8s import cel
from kubesched.k8s.client import kubeconfig_file
from kubesched.k8s.client.errors import ClientConfigError
from kubesched.k8s.client.http1_connection import AnswerReader, MalformedAnswer, read_at_once
from kubesched.k8s.model import manifests, quantity
from kubesched.k8s.patterns import Pattern, PatternError, PatternWorkError
from kubesched.k8s.patterns.syntax import parse_pattern
from kubesched.playground.apiserver.body_text import YamlTextError, load_yaml
from kubesched.playground.apiserver.errors import StatusError
from kubesched.playground.apiserver.http.bodies import read_body
from kubesched.playground.apiserver.http.protobuf import ProtobufError, decode_envelope
from kubesched.playground.apiserver.kinds.registry import ALL_KINDS
from kubesched.playground.apiserver.patching import json_patch
from kubesched.playground.apiserver.server import ApiServer, ServerSettings
from kubesched.playground.apiserver.verbs.patch import JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, patched
from kubesched.playground.apiserver.verbs.read import parse_fields, parse_labels
from kubesched.scheduler import config

CORPUS = Path(__file__).parent / "corpus"

_DEVICE = cel.DeviceView.of("gpu.example.com", {"model": "a100", "index": 3})
_POD_KIND = next(kind for kind in ALL_KINDS if kind.plural == "pods" and not kind.group)
_POD = {
    "metadata": {"name": "p", "namespace": "default", "labels": {"a": "b"}, "finalizers": ["x/y"]},
    "spec": {"containers": [{"name": "c", "image": "i", "ports": [{"containerPort": 80, "protocol": "TCP"}]}]},
}


@dataclass(frozen=True, slots=True)
class FuzzTarget:
    """`refusals` are what it may raise."""

    name: str
    feed: Callable[[bytes], object]
    refusals: tuple[type[Exception], ...]

    def try_input(self, data: bytes) -> None:
        """Raises whatever must not be raised."""
        try:
            self.feed(data)
        except self.refusals:
            return

    def corpus(self) -> list[bytes]:
        return [file.read_bytes() for file in sorted((CORPUS / self.name).iterdir())]


def _text(data: bytes) -> str:
    return data.decode(errors="replace")


def _http_client(data: bytes) -> None:
    """In one piece, and byte by byte: the same answer."""
    at_once = read_at_once(data)
    reader = AnswerReader()
    answer = reader.feed(data) or reader.end()
    if at_once is not None:
        assert answer is not None and (answer.status, answer.body) == (at_once.status, at_once.body)
    if len(data) > 2000:
        return
    slow = AnswerReader()
    pieces = None
    for place in range(len(data)):
        pieces = slow.feed(data[place : place + 1])
        if pieces is not None:
            break
    pieces = pieces or slow.end()
    if answer is not None:
        assert pieces is not None and (pieces.status, pieces.body) == (answer.status, answer.body)


class _Server:
    """An API server in a thread of its own, for raw bytes."""

    def __init__(self) -> None:
        self._ready = threading.Event()
        threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True).start()
        assert self._ready.wait(60)

    async def _serve(self) -> None:
        server = ApiServer(ServerSettings(tls=False))
        await server.start()
        address = urlsplit(server.url)
        self.address = (address.hostname, address.port)
        self.token = server.token.encode()
        self._ready.set()
        await asyncio.Event().wait()

    def send(self, data: bytes) -> bytes:
        with socket.create_connection(self.address, timeout=20) as connection:
            connection.sendall(data.replace(b"TOKEN", self.token))
            connection.shutdown(socket.SHUT_WR)
            answered = b""
            try:
                while more := connection.recv(65536):
                    answered += more
            except ConnectionError:
                pass
            return answered


_server = cache(_Server)


def _http_server(data: bytes) -> None:
    """Nothing, a refusal or an answer; never a failure."""
    answered = _server().send(data)
    assert not answered or answered.startswith((b"HTTP/1.1 ", b"HTTP/1.0 ")), answered
    assert b"Internal error occurred" not in answered, answered


def _patches(data: bytes) -> None:
    for media_type in (JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH):
        try:
            patched(json.loads(json.dumps(_POD)), media_type, msgspec.json.decode(data), _POD_KIND)
        except StatusError:
            continue
    json_patch.unknown_fields(msgspec.json.decode(data))


def _cel(data: bytes) -> None:
    cel.compile(_text(data)).evaluate(_DEVICE)


def _patterns(data: bytes) -> None:
    """The pattern, a line feed, the text: google-re2 and our automaton agree."""
    pattern, _, text = _text(data).partition("\n")
    program = parse_pattern(pattern)
    native, own = Pattern(program, is_native=True), Pattern(program, is_native=False)
    assert native.is_found_in(text) == own.is_found_in(text)
    assert native.find_all(text, 20) == own.find_all(text, 20)


def _bodies(data: bytes) -> None:
    for media_type in ("application/json", "application/yaml", "application/vnd.kubernetes.protobuf"):
        try:
            read_body(data, media_type, "Pod")
        except StatusError:
            continue


def _selectors(data: bytes) -> None:
    text = _text(data)
    for parse in (parse_labels, lambda given: parse_fields(given, _POD_KIND)):
        try:
            matcher: Any = parse(text)
        except StatusError:
            continue
        del matcher


def _quantities(data: bytes) -> None:
    found = quantity.parse(_text(data))
    again = quantity.parse(str(found))
    assert abs(found.nanos) > 10**30 or again.nanos == found.nanos


def _kubeconfig(data: bytes) -> None:
    kubeconfig_file._parse(Path("kubeconfig"), data)


TARGETS = {
    target.name: target
    for target in (
        FuzzTarget("http-client", _http_client, (MalformedAnswer,)),
        FuzzTarget("http-server", _http_server, ()),
        FuzzTarget("yaml", load_yaml, (YamlTextError,)),
        FuzzTarget("manifests", lambda data: manifests.read(data, "file"), (manifests.ManifestError,)),
        FuzzTarget("bodies", _bodies, ()),
        FuzzTarget("patches", _patches, (msgspec.DecodeError, UnicodeDecodeError)),
        FuzzTarget("cel", _cel, (cel.CelError,)),
        FuzzTarget("patterns", _patterns, (PatternError, PatternWorkError)),
        FuzzTarget("protobuf", decode_envelope, (ProtobufError,)),
        FuzzTarget("quantities", _quantities, (quantity.QuantityError,)),
        FuzzTarget("selectors", _selectors, ()),
        FuzzTarget("kubeconfig", _kubeconfig, (ClientConfigError,)),
        FuzzTarget("configuration", lambda data: config.load(data, "file"), (config.ConfigError,)),
    )
}
