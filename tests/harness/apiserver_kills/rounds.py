"""Rounds of writing, kill -9 and starting again on the same directory, with everything compared in between.

After each restart: lists show what was acknowledged; watches resumed from their last version are told everything after
it, in order; watches from older versions are told the same as those who watched then, or get 410.
"""

from __future__ import annotations

import asyncio
import random
from dataclasses import asdict, dataclass, field
from pathlib import Path

import aiohttp

from harness.apiserver_kills.followers import ExpiredError, Follower, in_time, tell_again
from harness.apiserver_kills.ledger import Ledger, LostWriteError
from harness.apiserver_kills.talking import TalkingClient, collection
from harness.apiserver_kills.writers import RESOURCES, Writer, content_of, create_markers, write_marker
from harness.apiserver_load.measured_server import MeasuredServer

_WRITERS = 8
_FOLLOWERS_EACH = 2
_HISTORIES = (100, 1_000, 50_000)
"""Changes that a server keeps; with few, watches from older versions get 410, and killing hits the deletion of rows."""
_LONGEST_ROUND_S = 0.8
_LONGEST_START_S = 1.2
_KILLED_WHILE_STARTING = 0.1
"""This part of the rounds begins with a server that is killed before it serves."""


@dataclass(slots=True)
class KillReport:
    """What the rounds had to do with."""

    rounds: int = 0
    killed_while_starting: int = 0
    acknowledged: int = 0
    in_flight_when_killed: int = 0
    events: int = 0
    resumed_watches: int = 0
    watches_from_older_versions: int = 0
    told_410: int = 0

    def as_dict(self) -> dict[str, int]:
        return asdict(self)


@dataclass(slots=True)
class KillRounds:
    """All rounds on one data directory."""

    data: Path
    dice: random.Random
    report: KillReport = field(default_factory=KillReport)
    ledger: Ledger = field(default_factory=Ledger)
    followers: list[Follower] = field(default_factory=list)

    async def run(self, rounds: int) -> KillReport:
        """Raises LostWriteError."""
        writers = [Writer(number, self.ledger, random.Random(self.dice.random())) for number in range(_WRITERS)]
        for number in range(rounds):
            await self._one_round(number, writers)
        server = await self._start()
        try:
            async with aiohttp.ClientSession() as session:
                await self._compare(TalkingClient(session, server.access), "end")
        finally:
            server.kill()
        self.report.acknowledged = self.ledger.n_acknowledged
        self.report.in_flight_when_killed = self.ledger.n_unknown
        self.report.events = sum(follower.n_told for follower in self.followers)
        return self.report

    async def _one_round(self, number: int, writers: list[Writer]) -> None:
        if self.dice.random() < _KILLED_WHILE_STARTING:
            early = MeasuredServer(self.data)
            await asyncio.sleep(self.dice.uniform(0.0, _LONGEST_START_S))
            early.kill()
            self.report.killed_while_starting += 1
        server = await self._start()
        try:
            async with aiohttp.ClientSession() as session:
                api = TalkingClient(session, server.access)
                await (self._compare(api, str(number)) if number else self._begin(api))
                working = [asyncio.ensure_future(writer.write_until_gone(api)) for writer in writers]
                watching = [asyncio.ensure_future(follower.follow(api)) for follower in self.followers]
                await asyncio.sleep(self.dice.uniform(0.0, _LONGEST_ROUND_S))
                server.kill()
                await asyncio.gather(*working, *watching)
        finally:
            server.kill()
        self.report.rounds += 1

    async def _start(self) -> MeasuredServer:
        server = MeasuredServer(self.data, ("--history", str(self.dice.choice(_HISTORIES))))
        await asyncio.to_thread(server.wait_until_serving)
        return server

    async def _begin(self, api: TalkingClient) -> None:
        await create_markers(api)
        self.followers = [Follower(resource) for resource in RESOURCES for _ in range(_FOLLOWERS_EACH)]
        for follower in self.followers:
            await follower.begin(api)

    async def _compare(self, api: TalkingClient, text: str) -> None:
        for resource in RESOURCES:
            self.ledger.compare(resource, await _shown(api, resource))
            marker = await write_marker(api, resource, text)
            own = [follower for follower in self.followers if follower.resource == resource]
            await asyncio.gather(*(self._resume(api, follower, marker) for follower in own))
            shown = {name: revision for name, (revision, _) in (await _shown(api, resource, "")).items()}
            for follower in own:
                self._check_follower(follower, shown, own[0])
            await self._tell_again(api, own[0], marker)

    async def _resume(self, api: TalkingClient, follower: Follower, marker: int) -> None:
        try:
            await in_time(follower.follow(api, marker))
            self.report.resumed_watches += 1
        except ExpiredError:
            self.report.told_410 += 1
            await follower.begin(api)

    def _check_follower(self, follower: Follower, shown: dict[str, int], first: Follower) -> None:
        if follower.state != shown:
            raise LostWriteError(f"{follower.resource}: watched {follower.state}, listed {shown}")
        if not follower.told:
            return
        since = follower.told[0][0]
        acknowledged = self.ledger.acknowledged.get(follower.resource, set())
        missing = {version for version in acknowledged if version >= since} - {told[0] for told in follower.told}
        if missing:
            raise LostWriteError(f"{follower.resource}: a watch missed the versions {sorted(missing)[:10]}")
        if first.told and first.told[0] == follower.told[0] and first.told != follower.told:
            raise LostWriteError(f"{follower.resource}: two watches were told different things")

    async def _tell_again(self, api: TalkingClient, follower: Follower, marker: int) -> None:
        """A watch from some older version is told what the follower was told then."""
        if len(follower.told) < 2:
            return
        last = len(follower.told) - 1
        at = self.dice.randrange(max(0, last - self.dice.choice((50, last))), last)
        self.report.watches_from_older_versions += 1
        try:
            told = await in_time(tell_again(api, follower.resource, follower.told[at][0], marker))
        except ExpiredError:
            self.report.told_410 += 1
            return
        if told != follower.told[at + 1 :]:
            raise LostWriteError(f"{follower.resource}: a watch from {follower.told[at][0]} was told something else")


async def _shown(api: TalkingClient, resource: str, without: str = "marker") -> dict[str, tuple[int, str]]:
    """What a list shows, but for the marker."""
    items = (await api.ask("GET", collection(resource)))["items"]
    found = {
        item["metadata"]["name"]: (int(item["metadata"]["resourceVersion"]), content_of(resource, item))
        for item in items
    }
    found.pop(without, None)
    return found
