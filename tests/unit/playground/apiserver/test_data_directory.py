"""The directory of a server: one server at a time, and only of a form that it knows."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from kubesched.playground.apiserver.server import ApiServer, ServerSettings
from kubesched.playground.apiserver.storage.sqlite import FORMAT, DataDirectory, DataDirectoryError
from kubesched.playground.apiserver.storage.store import ObjectKey


def test_a_directory_is_made_held_and_let_go(tmp_path: Path) -> None:
    first = DataDirectory(tmp_path / "new" / "one")
    with pytest.raises(DataDirectoryError, match="another API server is using it"):
        DataDirectory(first.path)
    first.close()
    DataDirectory(first.path).close()
    assert (first.path / "format").read_text() == f"{FORMAT}\n"
    assert first.path.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    ("content", "why"),
    [
        pytest.param(b"99\n", "written by another version", id="a later form"),
        pytest.param(b"\xff\xfe", "", id="no text at all"),
    ],
)
def test_a_form_that_is_not_known_is_refused(tmp_path: Path, content: bytes, why: str) -> None:
    (tmp_path / "format").write_bytes(content)
    with pytest.raises(DataDirectoryError, match=f"{tmp_path}: {why}"):
        DataDirectory(tmp_path)


def test_a_file_is_no_directory(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DataDirectoryError, match="not a directory"):
        DataDirectory(tmp_path / "file")


def test_components_find_out_who_signs_certificates() -> None:
    """kube-scheduler reads this config map before it serves anybody."""

    async def run() -> None:
        server = ApiServer(ServerSettings())
        await server.start()
        assert server.store is not None
        found = server.store.get("configmaps", ObjectKey("kube-system", "extension-apiserver-authentication"))
        assert found is not None
        assert b"BEGIN CERTIFICATE" in found.raw
        assert b"requestheader-client-ca-file" in found.raw
        await server.stop()

    asyncio.run(run())
