"""A token in a file that somebody else renews."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from kubesched.k8s.client.credentials.from_user import Impersonating, impersonation_headers
from kubesched.k8s.client.credentials.stored import TokenFileCredentials
from kubesched.k8s.client.errors import ClientConfigError


class _Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def test_a_token_is_read_again_after_a_minute(tmp_path: Path) -> None:
    path, clock = tmp_path / "token", _Clock()
    path.write_text("one\n")
    credentials = TokenFileCredentials(path, clock=clock)

    async def story() -> list[str]:
        first = await credentials.headers()
        path.write_text("two")
        clock.now_s = 59
        assert await credentials.headers() is first
        clock.now_s = 60
        second = await credentials.headers()
        clock.now_s = 200
        assert await credentials.headers() is second, "the same token gives the same object"
        return [second[0][1]]

    assert asyncio.run(story()) == ["Bearer two"]


@pytest.mark.parametrize("bad", ["", None], ids=["an empty file", "no file"])
def test_the_last_token_stays_while_the_file_is_of_no_use(tmp_path: Path, bad: str | None) -> None:
    path, clock = tmp_path / "token", _Clock()
    path.write_text("one")
    credentials = TokenFileCredentials(path, clock=clock)

    async def story() -> None:
        first = await credentials.headers()
        path.unlink() if bad is None else path.write_text(bad)
        clock.now_s = 100
        assert await credentials.headers() is first

    asyncio.run(story())


def test_after_a_refusal_the_file_is_read_at_once(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("one")
    credentials = TokenFileCredentials(path, clock=_Clock())

    async def story() -> None:
        first = await credentials.headers()
        assert not await credentials.renew(first, 0), "the same token is no reason to try again"
        path.write_text("two")
        assert await credentials.renew(first, 0)
        assert await credentials.renew(first, 0), "who comes second finds it done"
        assert await credentials.headers() == (("Authorization", "Bearer two"),)

    asyncio.run(story())
    assert str(path) in credentials.advice()


def test_impersonation_follows_the_login_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("one")
    jane = impersonation_headers("jane", "", (), {})
    credentials = Impersonating(TokenFileCredentials(path, clock=_Clock()), jane)

    async def story() -> None:
        first = await credentials.headers()
        assert first == (("Authorization", "Bearer one"), *jane)
        assert await credentials.headers() is first, "the same login gives the same object"
        assert not await credentials.renew(first, 0)
        path.write_text("two")
        assert await credentials.renew(first, 0)
        assert await credentials.headers() == (("Authorization", "Bearer two"), *jane)

    asyncio.run(story())
    assert str(path) in credentials.advice()


def test_a_file_that_never_was_readable_is_an_error(tmp_path: Path) -> None:
    credentials = TokenFileCredentials(tmp_path / "none")
    with pytest.raises(ClientConfigError, match=r"none: cannot read the token: No such file or directory"):
        asyncio.run(credentials.headers())
