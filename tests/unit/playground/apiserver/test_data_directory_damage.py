"""A data directory that was damaged: one line that names the file and says what to do, and nothing written into it."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from apiserver_serving import PODS, pod, running

WHAT_TO_DO = "restore it from a backup, or delete the directory to start a new cluster"


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Of a cluster with some pods."""

    async def run() -> None:
        async with running(tmp_path / "data") as client:
            for number in range(40):
                made = pod(f"p{number}")
                made["metadata"]["annotations"] = {"a": "x" * 1000}
                assert (await client.ask("POST", PODS, made)).status == 201

    asyncio.run(run())
    return tmp_path / "data"


def _execute(path: Path, *statements: str) -> None:
    connection = sqlite3.connect(path / "objects.sqlite", isolation_level=None)
    for statement in statements:
        connection.execute(statement)
    connection.close()


def _break_row(path: Path, value: str) -> None:
    _execute(path, f"UPDATE log SET value = {value} WHERE name = 'p7'")


def _foreign(path: Path) -> None:
    (path / "objects.sqlite").unlink()
    _execute(path, "CREATE TABLE bookmarks (url TEXT)")


def _of_another_cluster(path: Path) -> None:
    _execute(path, "UPDATE numbers SET value = 1 WHERE name = 'cluster'")


def _truncate(path: Path) -> None:
    file = path / "objects.sqlite"
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


DAMAGE: list[tuple[str, Callable[[Path], object], str]] = [
    ("zero length", lambda path: (path / "objects.sqlite").write_bytes(b""), "is empty, all objects"),
    ("missing", lambda path: (path / "objects.sqlite").unlink(), "is missing, with all objects"),
    ("garbage", lambda path: (path / "objects.sqlite").write_bytes(b"\xde\xad" * 9000), "file is not a database"),
    ("truncated", _truncate, "cannot be read (database disk image is malformed)"),
    ("foreign", _foreign, "is not the database of this cluster"),
    ("of another cluster", _of_another_cluster, "is not the database of this cluster"),
    ("no JSON", lambda path: _break_row(path, "x'ff'"), "(pods default/p7)"),
    ("no object", lambda path: _break_row(path, "'[1]'"), "(pods default/p7)"),
    ("no metadata", lambda path: _break_row(path, "'{}'"), "(pods default/p7)"),
    (
        "a number as value",
        lambda path: _break_row(path, "7"),
        "(pods default/p7)",
    ),
    ("no table", lambda path: _execute(path, "ALTER TABLE log DROP COLUMN value"), "no such column: value"),
    ("signing key", lambda path: (path / "tokens.key").write_bytes(b"no key"), "tokens.key: cannot be read"),
    ("server key", lambda path: (path / "server.key").write_bytes(b""), "server.key: cannot be read"),
    ("certificate", lambda path: (path / "server.crt").write_bytes(b"\xff"), "server.crt: cannot be read"),
    ("authority", lambda path: (path / "ca.crt").unlink(), "ca.crt: is missing"),
    ("token", lambda path: (path / "admin.token").write_bytes(b"\n"), "admin.token: cannot be read"),
    ("number of the cluster", lambda path: (path / "cluster").write_bytes(b"x"), "cluster: is broken"),
]


@pytest.mark.parametrize(("damage", "says"), [pytest.param(*rest, id=name) for name, *rest in DAMAGE])
def test_damage_is_told_in_one_line(directory: Path, damage: Callable[[Path], object], says: str) -> None:
    damage(directory)
    before = {file.name: file.read_bytes() for file in directory.iterdir() if not file.name.endswith(("-shm", "-wal"))}
    command = [sys.executable, "-m", "kubesched", "apiserver", "--data", str(directory), "--port", "0"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    [line] = done.stderr.splitlines()
    assert says in line
    assert line.endswith(WHAT_TO_DO)
    after = {file.name: file.read_bytes() for file in directory.iterdir() if not file.name.endswith(("-shm", "-wal"))}
    assert after == before


def test_the_first_start_may_be_interrupted_anywhere(tmp_path: Path) -> None:
    """Keys without a database, or a database without the cluster's number, are a start that did not end."""

    async def run(path: Path) -> None:
        async with running(path) as client:
            assert (await client.ask("GET", PODS)).status == 200

    asyncio.run(run(tmp_path))
    (tmp_path / "cluster").unlink()
    asyncio.run(run(tmp_path))
    (tmp_path / "cluster").unlink()
    for file in tmp_path.glob("objects.sqlite*"):
        file.unlink()
    (tmp_path / "objects.sqlite").touch()
    asyncio.run(run(tmp_path))
