"""klog's text and kube's JSON, verbosity, and the set-up of both."""

from __future__ import annotations

import io
import json
import logging
import re
import time
from collections.abc import Iterator

import pytest

from kubesched.live.logs import LogSettingsError, Verbosity, configure_logs
from kubesched.live.logs.setup import GuardedHandler, KlogJsonFormatter, KlogTextFormatter

TEXT = KlogTextFormatter(local_time=time.gmtime, pid=12345)
HEAD = "I1114 22:13:20.123456   12345 run.py:12] "


@pytest.fixture(autouse=True)
def _logs_as_before() -> Iterator[None]:
    root, ours = logging.getLogger(), logging.getLogger("kubesched")
    level = ours.level
    yield
    ours.setLevel(level)
    for handler in [known for known in root.handlers if isinstance(known, GuardedHandler)]:
        root.removeHandler(handler)


def line(
    message: str,
    level: int = logging.INFO,
    name: str = "kubesched.live.run",
    path: str = "/x/app/run.py",
    **extra: object,
) -> logging.LogRecord:
    record = logging.LogRecord(name, level, path, 12, message, None, None)
    record.created = 1_700_000_000.123457
    record.__dict__.update(extra)
    return record


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        pytest.param(line("Hello"), HEAD + '"Hello"', id="a message alone"),
        pytest.param(
            line("Bound", fields={"pod": "ns/name", "node": "n", "count": 3, "fits": True, "share": 0.5}),
            HEAD + '"Bound" pod="ns/name" node="n" count=3 fits=true share=0.5',
            id="fields in their order",
        ),
        pytest.param(
            line("Broke", logging.ERROR, fields={"pod": "ns/p", "err": "no"}),
            HEAD.replace("I", "E", 1) + '"Broke" err="no" pod="ns/p"',
            id="an error comes first",
        ),
        pytest.param(line("Careful", logging.WARNING), HEAD.replace("I", "W", 1) + '"Careful"', id="a warning"),
        pytest.param(
            line('say "hi"\n', fields={"a": 'b"c\\', "bell": "\x07\x01"}),
            HEAD + '"say \\"hi\\"\\n" a="b\\"c\\\\" bell="\\a\\x01"',
            id="quotes as Go quotes",
        ),
        pytest.param(
            line("Dump", fields={"text": "one\ntwo"}), HEAD + '"Dump" text=<\n\tone\n\ttwo\n >', id="text of many lines"
        ),
        pytest.param(
            line("Data", fields={"map": {"a": [1, None]}, "raw": b"12345", "what": ValueError("bad")}),
            HEAD + '"Data" map={"a":[1,null]} raw="<5 bytes>" what="bad"',
            id="data that is not text",
        ),
        pytest.param(line("not ours", name="aiohttp.server"), HEAD + "not ours", id="another library's line"),
    ],
)
def test_text_lines_look_like_klogs(record: logging.LogRecord, expected: str) -> None:
    assert TEXT.format(record) == expected


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        pytest.param(
            line("Bound", fields={"pod": "ns/name", "n": 3}, v=2),
            {"ts": 1700000000123.457, "caller": "app/run.py:12", "msg": "Bound", "v": 2, "pod": "ns/name", "n": 3},
            id="an info line has its verbosity",
        ),
        pytest.param(
            line("Broke", logging.ERROR, fields={"err": "no", "msg": "own"}),
            {"ts": 1700000000123.457, "caller": "app/run.py:12", "msg": "Broke", "err": "no", "msg_": "own"},
            id="an error has none",
        ),
    ],
)
def test_json_lines_look_like_kubes(record: logging.LogRecord, expected: dict[str, object]) -> None:
    text = KlogJsonFormatter().format(record)
    assert "\n" not in text
    assert json.loads(text) == expected
    assert list(json.loads(text)) == list(expected)


def test_an_exception_is_told_with_its_stack() -> None:
    stream = io.StringIO()
    configure_logs(0, "json", stream)
    try:
        raise ValueError("password=hunter2")
    except ValueError:
        logging.getLogger("kubesched.test").exception("Broke")
    told = json.loads(stream.getvalue())
    assert told["err"] == "password=REDACTED"
    assert "Traceback" in told["stack"]
    assert "hunter2" not in stream.getvalue().replace('raise ValueError(\\"password=hunter2', "")


@pytest.mark.parametrize(
    ("verbosity", "vmodule", "written"),
    [
        pytest.param(0, "", ["v0", "warning"], id="the default"),
        pytest.param(2, "", ["v0", "v2", "warning"], id="some"),
        pytest.param(4, "", ["v0", "v2", "v4", "debug", "warning"], id="also what the library calls debug"),
        pytest.param(0, "run=2", ["v0", "v2", "warning"], id="more of one file"),
        pytest.param(0, "other=9,r*=4", ["v0", "v2", "v4", "debug", "warning"], id="more of files of a pattern"),
        pytest.param(0, (("run", 2),), ["v0", "v2", "warning"], id="more of a file, taken apart already"),
        pytest.param(0, "other=9", ["v0", "warning"], id="more of another file"),
        pytest.param(0, "app/run=2", ["v0", "v2", "warning"], id="more of a path"),
        pytest.param(2, "run=0", ["v0", "v2", "warning"], id="a file never says less than all"),
    ],
)
def test_verbosity_decides_which_lines_are_written(
    verbosity: int, vmodule: str | tuple[tuple[str, int], ...], written: list[str]
) -> None:
    lines = [
        line("v0"),
        line("v2", v=2),
        line("v4", v=4),
        line("debug", logging.DEBUG),
        line("v9", v=10),
        line("warning", logging.WARNING, v=10),
    ]
    chosen = Verbosity(verbosity, vmodule)
    assert [record.msg for record in lines if chosen.filter(record)] == written


def test_the_verbosity_can_be_changed_on_the_run() -> None:
    stream = io.StringIO()
    control = configure_logs(stream=stream)
    logger = logging.getLogger("kubesched.test")
    logger.debug("hidden")
    logger.info("hidden", extra={"v": 3})
    control.set_level(4)
    logger.debug("shown")
    assert "hidden" not in stream.getvalue()
    assert re.fullmatch(r'I\d{4} [\d:.]{15} +\d+ test_log_formats\.py:\d+\] "shown"\n', stream.getvalue())


def test_setting_up_again_replaces() -> None:
    first, second = io.StringIO(), io.StringIO()
    configure_logs(stream=first)
    configure_logs(stream=second)
    logging.getLogger("kubesched").info("once")
    assert first.getvalue() == ""
    assert second.getvalue().count("once") == 1


@pytest.mark.parametrize(
    ("verbosity", "log_format", "vmodule", "message"),
    [
        pytest.param(-1, "text", "", "-v: -1 is not a verbosity: must not be negative", id="negative"),
        pytest.param(0, "xml", "", "--logging-format: 'xml' is not one of text, json", id="unknown format"),
        pytest.param(0, "text", "a", "--vmodule: 'a' is not pattern=N", id="no level"),
        pytest.param(0, "text", "a=b", "--vmodule: 'a=b' is not pattern=N", id="a level that is no number"),
        pytest.param(0, "json", "a=1", "--vmodule: Only supported for text log format", id="files in JSON"),
    ],
)
def test_settings_that_cannot_be_are_refused(verbosity: int, log_format: str, vmodule: str, message: str) -> None:
    with pytest.raises(LogSettingsError) as caught:
        configure_logs(verbosity, log_format, io.StringIO(), vmodule)
    assert str(caught.value) == message


def test_a_line_that_cannot_be_written_does_not_tell_its_content(capsys: pytest.CaptureFixture[str]) -> None:
    stream = io.StringIO()
    configure_logs(stream=stream)
    stream.close()
    logging.getLogger("kubesched").info("token=abc123", extra={"fields": {"pod": "private"}})
    told = capsys.readouterr().err
    assert "was not written: ValueError" in told
    assert "abc123" not in told and "private" not in told
