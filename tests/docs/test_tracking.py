"""The page on watching a run is true, with stand-ins for the few calls of trackers that it shows."""

import doctest
import logging
import sys
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "tracking.md"


class Tracked:
    """What a tracker was told: parameters, metrics in their order, and the summary."""

    def __init__(self, config):
        self.config, self.logged, self.summary = config, [], {}

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass

    def log(self, metrics):
        self.logged.append(metrics)


@pytest.fixture
def trackers(monkeypatch):
    told = {"steps": [], "params": {}, "metrics": {}, "tags": {}, "runs": []}

    @contextmanager
    def start_run(*, run_name):
        told["runs"].append(run_name)
        yield

    def log_metrics(metrics, step=None):
        told["steps"].append(step)
        told["metrics"] |= {key: float(value) for key, value in metrics.items()}

    def init(*, project, config):
        told["wandb"] = Tracked(config)
        return told["wandb"]

    mlflow = SimpleNamespace(
        start_run=start_run, log_metrics=log_metrics, log_params=told["params"].update,
        set_tag=lambda key, value: told["tags"].update({key: value}),
    )  # fmt: skip
    monkeypatch.setitem(sys.modules, "mlflow", mlflow)
    monkeypatch.setitem(sys.modules, "wandb", SimpleNamespace(init=init))
    before = logging.getLogger("bestarm").level
    yield told
    logging.getLogger("bestarm").setLevel(before)


def test_the_page_is_true_and_trackers_hear_of_every_result(trackers):
    assert doctest.testfile(str(PAGE), module_relative=False).failed == 0
    assert trackers["steps"] == [*range(1, 13), None]
    assert trackers["params"] == {"budget": 12, "seed": 1, "arms": 3}
    assert trackers["tags"] == {"best arm": "wax"}
    assert {"reward of wax": 3.0, "spent": 12.0}.items() <= trackers["metrics"].items()
    tracked = trackers["wandb"]
    assert [one["spent"] for one in tracked.logged][-1] == 12.0
    assert len(tracked.logged) == 12
    assert tracked.summary["best arm"] == "wax"
