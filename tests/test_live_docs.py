"""The examples of live systems do what they say."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture
def example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.setenv("DATABASE", str(tmp_path / "shop.db"))
    path = ROOT / "docs" / "examples" / "web_service.py"
    spec = importlib.util.spec_from_file_location("web_service", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "web_service", module)
    spec.loader.exec_module(module)
    yield module
    module.seller.close()


def test_the_web_service_sells(example: ModuleType) -> None:
    testclient = pytest.importorskip("fastapi.testclient")
    client = testclient.TestClient(example.app)
    first = client.post("/price", json={"order": "order-17"}).json()
    assert first["price"] in example.PRICES
    assert client.post("/price", json={"order": "order-17"}).json() == first
    for _ in range(2):  # told twice, it counts once
        told = client.post("/reward", json={"id": first["id"], "euros": 12.99})
        assert told.status_code == 200
    assert client.post("/reward", json={"id": "99", "euros": 1.0}).status_code == 422
    for k in range(20):
        sold = client.post("/price", json={"order": f"order-{k}"}).json()
        client.post("/reward", json={"id": sold["id"], "euros": sold["price"]})
    page = client.get("/report")
    assert page.status_code == 200
    assert "espresso" in page.text


def test_the_nightly_job_may_be_run_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = ROOT / "docs" / "examples" / "nightly_job.py"
    spec = importlib.util.spec_from_file_location("nightly_job", path)
    assert spec is not None
    assert spec.loader is not None
    job = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(job)
    sales, prices = tmp_path / "sales.csv", tmp_path / "prices.csv"
    job.main(sales, prices)
    tonight = prices.read_text()
    assert len(tonight.splitlines()) == 1 + len(job.SHOPS)
    job.main(sales, prices)
    assert prices.read_text() == tonight
    rows = [line.split(",") for line in tonight.splitlines()[1:]]
    told = [f"{decision},{price if k else ''}" for k, (_, decision, price) in enumerate(rows)]
    sales.write_text("\n".join(["decision,euros", *told]))
    job.main(sales, prices)
    job.main(sales, prices)
    assert prices.read_text() == tonight  # the night's prices are decided
