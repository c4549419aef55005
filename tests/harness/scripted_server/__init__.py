"""An API server in this process, for tests: it keeps objects as JSON, and fails on request.

`ScriptedServer` speaks enough of Kubernetes' HTTP for a scheduler: create, get, list, watch, update, patch, delete,
binding, eviction, status, leases, events and access reviews. It checks nothing about the objects themselves.

    async with ScriptedServer() as server:
        server.put({"kind": "Node", "metadata": {"name": "a"}})
        server.fail_next("POST", "binding", status=500)
        client = RestClient(ServerTarget(url=server.url))

`server` is the whole interface; `faults` says what can go wrong; `storage` and `watching` hold the semantics.
"""

from harness.scripted_server.faults import Fault, RecordedRequest, until
from harness.scripted_server.listening import Listened, following
from harness.scripted_server.server import ScriptedServer

__all__ = ["Fault", "Listened", "RecordedRequest", "ScriptedServer", "following", "until"]
