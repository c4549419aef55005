"""The journal of a scheduling loop: run again, it asks for the same effects; live, and under faults."""

from __future__ import annotations

import gzip
import re
from pathlib import Path
from random import Random

import pytest
from click.testing import CliRunner
from live_journal import N_PODS, write_journal

from harness.chaos import simulation as chaos
from harness.chaos.run import run_seed
from harness.chaos.weather import options_for
from kubesched.cli.main import main
from kubesched.framework.effects import Effect
from kubesched.k8s.model.meta import KubeObject
from kubesched.live.engine_recorder import JournalFiles, recorded_form
from kubesched.live.options import parse_flags, read_options
from kubesched.live.options.flag import FlagError
from kubesched.scheduler.engine.loop import Scheduler
from kubesched.simulator.recording.engine_journal import (
    ANSWER,
    ATTEMPT,
    EFFECTS,
    KIND,
    PUT,
    REMOVE,
    REQUEST,
    TICK,
    JournalHeader,
    JournalledLoop,
    JournalReader,
    answer_of,
    checksum,
    fact_of,
    request_of,
)
from kubesched.simulator.recording.lines import API_VERSION, RecordingError
from kubesched.simulator.replay.exact import ExactReplay


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("journal") / "here"
    write_journal(directory)
    return directory


def test_a_live_run_is_reproduced_effect_by_effect(journal: Path) -> None:
    replay = ExactReplay(journal)
    replay.run()
    assert replay.difference == ""
    assert replay.n_bound == N_PODS
    assert replay.headline.startswith(f"Reproduced all {replay.n_effects} effects")


def test_the_journal_holds_no_secret(journal: Path) -> None:
    text = b"".join(gzip.decompress(path.read_bytes()) for path in journal.iterdir())
    assert b"planted" not in text.lower()
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in journal.iterdir())


def test_another_seed_is_found_out(journal: Path, tmp_path: Path) -> None:
    (path,) = journal.iterdir()
    text = gzip.decompress(path.read_bytes())
    seed = JournalReader(journal).header.seed
    other = tmp_path / "engine-0001.jsonl.gz"
    other.write_bytes(gzip.compress(text.replace(f'"seed":{seed}'.encode(), b'"seed":1')))
    replay = ExactReplay(tmp_path)
    replay.run()
    assert replay.difference and replay.headline.startswith("Differs at step ")


def test_stepping_through_it(journal: Path) -> None:
    commands = ["next 2", "pod default/p5", "state", "failed", "why", "queue", "to 0", "oops", "help", "continue"]
    result = CliRunner().invoke(main, ["debug", str(journal), *(part for c in commands for part in ("-c", c))])
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert "attempt 1: default/p0 goes to n" in lines[0] and "attempt 2: default/p1" in lines[1]
    assert "default/p5 goes to" in lines[2]
    state = re.fullmatch(r"6 nodes, (\d+) pods on nodes \((\d+) of them .*\), (\d+) pending; .*", lines[3])
    assert state and sum(int(state[group]) for group in (1, 3)) <= N_PODS + 1
    assert "default/huge 0/6 nodes are available: 6 Insufficient cpu." in result.stdout
    assert "default/huge is pending" in result.stdout
    assert "oops: no such command" in result.stdout
    assert lines[-1].startswith("End of the journal. Reproduced all ")


def test_commands_may_be_typed(journal: Path) -> None:
    result = CliRunner().invoke(main, ["debug", str(journal)], input="n\nw default/p0\nx\n")
    assert result.exit_code == 0
    assert "default/p0 is on n" in result.stdout


def test_exact_on_the_command_line(journal: Path, tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["replay", "--exact", str(journal)])
    assert (result.exit_code, result.stdout[:14]) == (0, "Reproduced all")
    result = CliRunner().invoke(main, ["replay", "--exact", str(tmp_path)])
    assert result.exit_code == 2 and "no journal there" in result.stderr


def test_a_journal_that_was_cut_off_still_replays(journal: Path, tmp_path: Path) -> None:
    (path,) = journal.iterdir()
    data = path.read_bytes()
    (tmp_path / path.name).write_bytes(data[: len(data) * 2 // 3])
    replay = ExactReplay(tmp_path)
    replay.run()
    assert replay.difference == "" and replay.n_steps > 10


def test_a_journal_is_not_written_over(journal: Path) -> None:
    with pytest.raises(RecordingError, match="has a journal already"):
        JournalFiles(journal, JournalHeader(API_VERSION, KIND, ""))


def test_a_journal_is_bounded_and_rotates(tmp_path: Path) -> None:
    files = JournalFiles(tmp_path, JournalHeader(API_VERSION, KIND, ""), most_bytes=3_000, file_bytes=1_000)
    dice = Random(1)
    for _ in range(40):
        files.write(dice.randbytes(300).hex().encode())
        files._write_waiting()
    files.close()
    sizes = [path.stat().st_size for path in sorted(tmp_path.iterdir())]
    assert len(sizes) > 1 and sum(sizes) < 5_000


@pytest.mark.parametrize("version", ["1.13", "1.14", "1.17", "1.18", "1.19", "1.36-alpha", "1.37"])
def test_an_emulated_scheduler_is_reproduced_too(version: str, tmp_path: Path) -> None:
    write_journal(tmp_path, f"--emulate={version}")
    replay = ExactReplay(tmp_path)
    replay.run()
    assert replay.difference == ""
    assert replay.n_bound == N_PODS
    result = CliRunner().invoke(main, ["debug", str(tmp_path), "-c", "failed", "-c", "why"])
    assert "default/huge 0/6 nodes are available" in result.stdout and "default/huge is pending" in result.stdout


def test_a_policy_that_no_file_can_say_is_refused(tmp_path: Path) -> None:
    policy = tmp_path / "policy.json"
    policy.write_text('{"kind": "Policy", "apiVersion": "v1", "alwaysCheckAllPredicates": true}')
    flags = [f"--record={tmp_path}", "--emulate=1.19", f"--policy-config-file={policy}"]
    with pytest.raises(FlagError, match=r"--record: no file of v1\.19 can say all of this: alwaysCheckAllPredicates"):
        read_options(parse_flags(flags))


GATE = """
import queue, threading
from kubesched.framework import PermitResult, Status

class Gate:
    name = "Gate"

    def __init__(self, args, handle):
        self.handle, self.asked = handle, queue.SimpleQueue()
        threading.Thread(target=self.answer, daemon=True).start()

    def permit(self, cycle, pod, node_name):
        self.asked.put((pod.uid, pod.name))
        return PermitResult(Status.wait("for somebody"), 600.0)

    def answer(self):
        is_turned_away = set()
        while True:
            uid, name = self.asked.get()
            if name == "p3" and name not in is_turned_away:
                is_turned_away.add(name)
                done = lambda: self.handle.reject(uid, self.name, "not yet")
            else:
                done = lambda: self.handle.allow(uid, self.name)
            for _ in range(10_000):
                if done():
                    break
                threading.Event().wait(0.001)
"""


def test_what_a_plugin_asks_for_by_itself_is_in_the_journal(tmp_path: Path) -> None:
    """A thread of its own lets pods go on, and turns one away once. In the replay it has no say."""
    plugin = tmp_path / "gate.py"
    plugin.write_text(GATE)
    config = tmp_path / "config.yaml"
    config.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "leaderElection: {leaderElect: false}\n"
        "profiles: [{plugins: {multiPoint: {enabled: [{name: Gate}]}}}]\n"
    )
    write_journal(tmp_path / "journal", f"--plugin={plugin}", f"--config={config}")
    for _ in range(3):
        replay = ExactReplay(tmp_path / "journal", [plugin])
        replay.run()
        assert replay.difference == ""
        assert replay.n_bound == N_PODS
    requests = [request_of(entry) for entry in JournalReader(tmp_path / "journal") if entry.op == REQUEST]
    assert {(one.name, one.plugin) for one in requests} == {("allow", "Gate"), ("reject", "Gate")}


class _Journalled(Scheduler):
    """A loop that keeps its own journal, for those who build one."""

    lines: list[bytes]

    def keep_journal(self) -> None:
        self.lines = []
        inner = _Inner(self)
        outer = JournalledLoop(inner, self.lines.append, recorded_form)  # type: ignore[arg-type]
        for name in ("put", "remove", "answer", "tick", "schedule_one", "take_effects"):
            setattr(self, name, getattr(outer, name))


class _Inner:
    """The loop's own methods."""

    def __init__(self, loop: Scheduler) -> None:
        self._loop = loop
        self.requests = loop.requests

    def put(self, item: KubeObject, now_s: float) -> None:
        Scheduler.put(self._loop, item, now_s)

    def remove(self, item: KubeObject, now_s: float) -> None:
        Scheduler.remove(self._loop, item, now_s)

    def answer(self, effect_id: int, answer: object, now_s: float) -> None:
        Scheduler.answer(self._loop, effect_id, answer, now_s)

    def tick(self, now_s: float) -> None:
        Scheduler.tick(self._loop, now_s)

    def schedule_one(self, now_s: float) -> bool:
        return Scheduler.schedule_one(self._loop, now_s)

    def take_effects(self) -> list[Effect]:
        return Scheduler.take_effects(self._loop)


_SEEDS = [seed for seed in range(1, 41) if not options_for(seed).number("permit")][:12]
"""Without the plugin that is told from outside whom to let through: of that, a journal knows nothing."""


@pytest.mark.parametrize("seed", _SEEDS)
def test_a_run_of_the_fault_simulation_is_reproduced(
    seed: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    built: list[tuple[Scheduler, chaos.Simulation]] = []
    build = chaos.Simulation._build

    def build_journalled(simulation: chaos.Simulation) -> Scheduler:
        loop = build(simulation)
        loop.__class__ = _Journalled
        assert isinstance(loop, _Journalled)
        loop.keep_journal()
        built.append((loop, simulation))
        return loop

    monkeypatch.setattr(chaos.Simulation, "_build", build_journalled)
    run_seed(seed)
    n_effects = 0
    for number, (loop, simulation) in enumerate(built):
        assert isinstance(loop, _Journalled)
        path = tmp_path / f"{number}.jsonl"
        header = b'{"apiVersion":"kubesched.dev/v1alpha1","kind":"EngineJournal","configuration":""}'
        path.write_bytes(b"\n".join([header, *loop.lines, b""]))
        n_effects += _replayed(path, build(simulation))
    assert n_effects > 0


def _replayed(path: Path, loop: Scheduler) -> int:
    """How many effects came out again."""
    n_effects = 0
    for entry in JournalReader(path):
        if entry.op == PUT:
            loop.put(fact_of(entry), entry.at_s)
        elif entry.op == REMOVE:
            loop.remove(fact_of(entry), entry.at_s)
        elif entry.op == TICK:
            loop.tick(entry.at_s)
        elif entry.op == ATTEMPT:
            loop.schedule_one(entry.at_s)
        elif entry.op == ANSWER:
            loop.answer(entry.number, answer_of(entry), entry.at_s)
        elif entry.op == EFFECTS:
            effects = loop.take_effects()
            assert (len(effects), checksum(effects)) == (entry.number, int(entry.body)), entry
            n_effects += len(effects)
    return n_effects
