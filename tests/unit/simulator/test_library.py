"""The library as somebody in a notebook meets it: what it shows, what it takes, what it says when that is wrong."""

from __future__ import annotations

import importlib
import io
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

import kubesched
from kubesched.k8s.errors import KubeschedError
from kubesched.testing import make

EXAMPLES = Path(__file__).parents[3] / "examples"
SOURCE = Path(kubesched.__file__).parent
CONFIG = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{schedulerName: other}]
"""


def test_the_library_shows_what_it_has() -> None:
    assert dir(kubesched) == sorted(kubesched.__all__)
    assert {"load", "explain", "simulate", "KubeschedError", "__version__"} <= set(dir(kubesched))
    for name in dir(kubesched):
        assert getattr(kubesched, name) is not None
    assert kubesched.__version__[0].isdigit()
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = kubesched.nothing


def test_importing_it_loads_next_to_nothing() -> None:
    code = "import sys, kubesched; dir(kubesched); print([m for m in sys.modules if 'kubesched' in m or m == 'numpy'])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert found.strip() == "['kubesched']"


# -- what is given -----------------------------------------------------------------------------------------------------

NODE_TEXT = "apiVersion: v1\nkind: Node\nmetadata: {name: a}\nstatus: {allocatable: {cpu: '4', pods: '10'}}\n"
NODE_LINE = "{apiVersion: v1, kind: Node, metadata: {name: a}, status: {allocatable: {cpu: '4', pods: '10'}}}"


def test_a_source_is_what_it_looks_like(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "app" / "deep").mkdir(parents=True)
    (tmp_path / "app" / "deep" / "node.yaml").write_text(NODE_TEXT)
    for source in (
        "app",
        "app/",
        tmp_path / "app",
        "app/deep/node.yaml",
        NODE_TEXT,
        NODE_LINE,
        NODE_TEXT.encode(),
        io.StringIO(NODE_TEXT),
        yaml.safe_load(NODE_TEXT),
        {"apiVersion": "v1", "kind": "List", "items": [yaml.safe_load(NODE_TEXT)]},
        [NODE_LINE],
        [yaml.safe_load(NODE_TEXT)],
        (document for document in [yaml.safe_load(NODE_TEXT)]),
        kubesched.load(NODE_TEXT),
    ):
        assert kubesched.load(source).nodes == ["a"], source


def test_a_file_may_be_called_like_a_mapping(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a: b").write_text(NODE_TEXT)
    assert kubesched.load("a: b").nodes == ["a"]


def test_sources_go_together_and_kinds_of_no_use_are_counted() -> None:
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}
    cluster = kubesched.load(NODE_LINE, [make.pod("p", cpu=1), make.pod("q", on="a")], config_map, config_map)
    assert (cluster.nodes, cluster.pods, cluster.pending) == (["a"], ["default/p", "default/q"], ["default/p"])
    assert (len(cluster), cluster.ignored) == (3, {"v1 ConfigMap": 2})
    assert kubesched.explain(cluster, "p").fits
    assert kubesched.simulate(cluster).summary["states"] == {"Running": 2}
    assert [step.node for step in kubesched.simulate(cluster, sequence=["p"]).steps] == ["a"]


def test_explain_and_simulate_take_sources_too() -> None:
    assert not kubesched.explain(EXAMPLES / "explain", "shop/report").fits
    assert not kubesched.explain(str(EXAMPLES / "explain"), "shop/report").fits
    paths = [EXAMPLES / "simulate" / "cluster.yaml", EXAMPLES / "simulate" / "workload.yaml"]
    assert kubesched.simulate(paths, until="1m").summary["nodes"] == 5


def test_a_change_makes_another_cluster() -> None:
    cluster = kubesched.load(EXAMPLES / "explain")
    pod = cluster.get("pod", "shop/report")
    assert (pod["apiVersion"], pod["kind"]) == ("v1", "Pod")
    pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "100m"
    changed = cluster.replace(pod)
    assert kubesched.explain(changed, "shop/report").fits
    assert not kubesched.explain(cluster, "shop/report").fits
    assert len(changed) == len(cluster)
    assert "general-1" not in cluster.without("Nodes", "general-1").nodes
    assert [kubesched.load(item).found.objects for item in cluster] == [[item] for item in cluster.found.objects]


def test_a_cluster_is_shown_in_one_line() -> None:
    shown = repr(kubesched.load(EXAMPLES / "explain"))
    assert shown.startswith("<LoadedCluster: 5 nodes, ") and "pending: " in shown and len(shown) < 250


@pytest.mark.parametrize("given", [CONFIG, yaml.safe_load(CONFIG), "file", "path"])
def test_a_configuration_is_what_it_looks_like(given: Any, tmp_path: Path) -> None:
    file = tmp_path / "scheduler.yaml"
    file.write_text(CONFIG)
    files: dict[str, Any] = {"file": str(file), "path": file}
    config = files.get(given, given) if isinstance(given, str) else given
    cluster = kubesched.load(NODE_LINE, make.pod("p", cpu=1, spec={"schedulerName": "other"}))
    assert kubesched.explain(cluster, "p", config).scheduler.profile.scheduler_name == "other"
    assert kubesched.simulate(cluster, config=config).summary["states"] == {"Running": 1}


@pytest.mark.parametrize("given", ["1h30m", 5400, 5400.0, timedelta(minutes=90), " 90m "])
@pytest.mark.parametrize("name", ["until", "until_s"])
def test_a_duration_is_a_text_or_seconds(given: Any, name: str) -> None:
    deployment = make.pod("p", cpu=1)
    report = kubesched.simulate([NODE_LINE, deployment], **{name: given})
    assert report.options.until_s == 5400.0


@pytest.mark.parametrize("given", ["2026-05-01T08:00:00Z", datetime(2026, 5, 1, 8, tzinfo=UTC), 1777622400])
def test_a_start_is_a_text_a_datetime_or_seconds(given: Any) -> None:
    assert kubesched.simulate(NODE_LINE, start=given).summary["start"] == "2026-05-01T08:00:00Z"


# -- errors ------------------------------------------------------------------------------------------------------------


WRONG: Any = 7


@pytest.mark.parametrize(
    ("call", "message"),
    [
        pytest.param(lambda: kubesched.load("dump.jsn"), "^dump.jsn: No such file", id="no file"),
        pytest.param(lambda: kubesched.load(Path("a: b")), "^a: b: No such file", id="a path is a path"),
        pytest.param(lambda: kubesched.load("-"), "^-: No such file", id="not standard input"),
        pytest.param(lambda: kubesched.load(Path("-")), "^-: No such file", id="nor as a path"),
        pytest.param(lambda: kubesched.load("x" * 5000), "File name too long", id="no name"),
        pytest.param(lambda: kubesched.load("{kind: Pod"), "not YAML or JSON", id="a broken mapping"),
        pytest.param(lambda: kubesched.load(WRONG), "not int", id="a number"),
        pytest.param(lambda: kubesched.load([7]), "not int", id="numbers"),
        pytest.param(lambda: kubesched.load("a: 1\nb: 2"), "kind is missing", id="no object"),
        pytest.param(lambda: kubesched.explain(NODE_LINE, "p"), "no pod default/p: no pods were read", id="no pod"),
        pytest.param(lambda: kubesched.explain(NODE_LINE, "p", "none.yaml"), "^none.yaml: No such", id="no config"),
        pytest.param(lambda: kubesched.simulate(NODE_LINE, until="soon"), "^until: 'soon' is not a dur", id="until"),
        pytest.param(lambda: kubesched.simulate(NODE_LINE, until="-1s"), "is negative", id="before the start"),
        pytest.param(lambda: kubesched.simulate(NODE_LINE, until=float("nan")), "^until: nan is not", id="no number"),
        pytest.param(lambda: kubesched.simulate(NODE_LINE, start="now"), "^start: not an RFC 3339", id="start"),
        pytest.param(lambda: kubesched.simulate(NODE_LINE, ["p"]), "not among the pending", id="no pod in sequence"),
        pytest.param(lambda: kubesched.simulate(NODE_LINE, emulate="1.2"), "1.2", id="no such version"),
        pytest.param(lambda: kubesched.simulate(NODE_LINE, provider="none"), "none", id="no such provider"),
        pytest.param(lambda: kubesched.simulate(NODE_LINE, plugins=[int]), "int", id="no plugin"),
        pytest.param(lambda: kubesched.simulate(NODE_LINE, plugins=WRONG), "a list of classes", id="no plugins"),
        pytest.param(lambda: kubesched.explain("p", [NODE_LINE]), "after the cluster", id="the other way round"),  # type: ignore[call-overload]
        pytest.param(lambda: kubesched.simulate(NODE_LINE, seed="x"), "^seed: 'x' is not a whole", id="seed"),  # type: ignore[call-overload]
        pytest.param(lambda: kubesched.sweep(NODE_LINE, seeds="12"), "^seed: '1' is not a whole", id="seeds"),  # type: ignore[arg-type]
        pytest.param(lambda: kubesched.compare(NODE_LINE, ["base"]), "^variants: a mapping", id="variants"),  # type: ignore[arg-type]
        pytest.param(
            lambda: kubesched.compare(NODE_LINE, {"base": {}, "x": {"confg": ""}}),
            '^variant x: unknown key "confg" .did you mean "config"',
            id="a variant's key",
        ),
        pytest.param(lambda: kubesched.capacity(NODE_LINE, shapes=WRONG), "^shapes: a list of texts", id="shapes"),
        pytest.param(lambda: kubesched.simulate(NODE_LINE).plot.heatmap("gpu"), 'resource "gpu": there are', id="plot"),
        pytest.param(lambda: kubesched.load(NODE_LINE).get("nod", "a"), 'did you mean "Node"', id="no kind"),
        pytest.param(lambda: kubesched.load(NODE_LINE).get("node", "b"), "Node b is not there", id="no node"),
    ],
)
def test_what_users_meet_is_a_kubesched_error(call: Any, message: str) -> None:
    with pytest.raises(kubesched.KubeschedError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_one_text_is_as_good_as_a_list_of_one() -> None:
    cluster = make.node("a", labels={"topology.kubernetes.io/zone": "x"})
    listed = kubesched.capacity(cluster, shapes=["1/1Gi"], by=["zone"])
    assert str(kubesched.capacity(cluster, shapes="1/1Gi", by="zone")) == str(listed)


@pytest.mark.parametrize("name", ["pandas", "polars"])
def test_a_missing_dataframe_library_is_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    table = kubesched.simulate(NODE_LINE).nodes
    with pytest.raises(ImportError, match=f"^{name} is not installed: pip install {name}, or use to_dict"):
        getattr(table, f"to_{name}")()


def test_a_misspelt_file_is_hinted_at(tmp_path: Path) -> None:
    (tmp_path / "dump.json").write_text(NODE_LINE)
    with pytest.raises(kubesched.InputError, match=r'No such file or directory \(did you mean "dump.json"\?\)'):
        kubesched.load(tmp_path / "dump.jsn")
    with pytest.raises(kubesched.InputError, match=r"No such file or directory$"):  # the suffix alone is no likeness
        kubesched.load(tmp_path / "web.json")


NOT_FOR_USERS = {
    "TooManyPodsError",  # ends a run, which then says that it was cut short
    "PluginFault",  # what a plugin did, caught and told
    "InvalidScore",
}


def test_errors_of_the_librarys_rooms_have_one_base() -> None:
    rooms = ("k8s/model", "k8s/workloads", "framework", "scheduler/config", "older", "explanation", "simulator")
    found = 0
    for path in (path for room in rooms for path in (SOURCE / room).rglob("*.py")):
        name = ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts)
        for value in list(vars(importlib.import_module(name.removesuffix(".__init__"))).values()):
            if not isinstance(value, type) or not issubclass(value, Exception) or value.__module__ != name:
                continue
            if not value.__name__.startswith("_") and value.__name__ not in NOT_FOR_USERS:
                assert issubclass(value, KubeschedError), value
                found += 1
    assert found > 15
