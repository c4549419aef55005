"""Paths and Accept headers: what a request names and which form of answer it wants."""

from __future__ import annotations

import pytest

from kubesched.playground.apiserver.errors import StatusError
from kubesched.playground.apiserver.http.answers import Wanted, choose
from kubesched.playground.apiserver.http.exchange import read_path


@pytest.mark.parametrize(
    ("method", "path", "is_watch", "expected"),
    [
        pytest.param("GET", "/api/v1/pods", False, ("list", "", "pods", "", ""), id="a list of all namespaces"),
        pytest.param("GET", "/api/v1/pods", True, ("watch", "", "pods", "", ""), id="a watch"),
        pytest.param("GET", "/api/v1/namespaces/n/pods/p", True, ("get", "n", "pods", "p", ""), id="one object"),
        pytest.param(
            "PUT",
            "/api/v1/namespaces/n/finalize",
            False,
            ("update", "n", "namespaces", "n", "finalize"),
            id="a namespace",
        ),
        pytest.param(
            "DELETE",
            "/apis/apps/v1/namespaces/n/deployments",
            False,
            ("deletecollection", "n", "deployments", "", ""),
            id="a collection",
        ),
        pytest.param(
            "POST",
            "/api/v1/namespaces/n/pods/p/binding",
            False,
            ("create", "n", "pods", "p", "binding"),
            id="a subresource",
        ),
        pytest.param(
            "GET", "/api/v1/watch/namespaces/n/pods", False, ("watch", "n", "pods", "", ""), id="an old watch"
        ),
    ],
)
def test_a_path_names_verb_and_object(method: str, path: str, is_watch: bool, expected: tuple[str, ...]) -> None:
    found = read_path(path, method, is_watch)
    assert (found.verb, found.namespace, found.plural, found.name, found.subresource) == expected


@pytest.mark.parametrize("path", ["/", "/healthz", "/api", "/apis/apps/v1", "/openapi/v3/api/v1"])
def test_other_paths_name_no_resource(path: str) -> None:
    assert not read_path(path, "GET", False).is_resource


_TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        pytest.param("", Wanted(), id="nothing said"),
        pytest.param("*/*", Wanted(), id="anything"),
        pytest.param(f"{_TABLE},application/json", Wanted(transform="Table"), id="a table first"),
        pytest.param(
            "application/json;as=Foo;v=v1;g=meta.k8s.io,application/json", Wanted(), id="an unknown form first"
        ),
        pytest.param("application/vnd.kubernetes.protobuf,application/json", Wanted(), id="protobuf or JSON"),
        pytest.param("text/html;q=0.9,application/yaml;q=0.5", Wanted("application/yaml"), id="by quality"),
    ],
)
def test_the_first_form_that_can_be_made_is_chosen(accept: str, expected: Wanted) -> None:
    assert choose(accept) == expected


@pytest.mark.parametrize("accept", ["text/html", "application/xml", "application/*", _TABLE.replace("v1", "v9")])
def test_what_cannot_be_made_is_refused(accept: str) -> None:
    with pytest.raises(StatusError) as refused:
        choose(accept)
    assert refused.value.code == 406
