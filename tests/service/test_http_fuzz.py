"""Schemathesis asks what the description allows and what it does not."""

import pytest
from hypothesis import HealthCheck, given, settings
from serving import SOURCE
from test_http import TOKEN, serving

from distbfs.service.client import connect
from distbfs.service.operations import OPERATIONS

httpx = pytest.importorskip("httpx", reason="needs the extra 'test'")
schemathesis = pytest.importorskip("schemathesis", reason="needs the extra 'test'")

AUTH = {"Authorization": f"Bearer {TOKEN}"}
WANTED = SOURCE.distances(3)


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    with serving() as served:
        yield served


@pytest.fixture(scope="module")
def description(shared):
    described = httpx.get(f"{shared[1]}/openapi.json", trust_env=False).json()
    del described["paths"]["/v1/shutdown"]
    schema = schemathesis.openapi.from_dict(described)
    schema.config.update(base_url=shared[1])
    # too many vertices are told by a status of their own
    refused = schema.config.checks.negative_data_rejection
    refused.expected_statuses = [*refused.expected_statuses, "413"]
    return schema


PATHS = [("POST", f"/v1/{op}") for op in OPERATIONS if op != "shutdown"]
PATHS += [("GET", path) for path in ("/healthz", "/readyz", "/metrics")]


@pytest.mark.thorough
@pytest.mark.parametrize("mode", ["positive", "negative"])
@pytest.mark.parametrize(("method", "path"), PATHS)
def test_any_request(description, method, path, mode):
    """Answers are as described, never 500, and wrong requests are refused."""
    checks = schemathesis.checks
    wanted = [
        checks.status_code_conformance,
        checks.content_type_conformance,
        checks.response_schema_conformance,
    ]
    if mode == "negative":
        wanted.append(checks.negative_data_rejection)
    operation = description[path][method]
    chosen = schemathesis.GenerationMode(mode)
    if mode == "negative" and method == "GET":
        pytest.skip("nothing of it can be wrong")

    @settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
    @given(operation.as_strategy(generation_mode=chosen))
    def ask(case):
        answer = case.call(headers=AUTH)
        assert answer.status_code != 500
        case.validate_response(answer, headers=AUTH, checks=wanted)
        if mode == "positive" and answer.status_code == 400:
            # what no schema can say
            assert "is not read with the result" in answer.json()["error"]["message"]

    ask()


def test_it_still_answers(shared):
    with connect(shared[1], token=TOKEN) as client:
        assert client.distances(3, list(range(SOURCE.n))) == WANTED.tolist()
