"""A log means the same whatever the processor: of two machines that share a study, neither mistakes a trial."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from bestarm.study import create_study, load_study

WORKER = """
import json, sys
from threadpoolctl import threadpool_info
from bestarm.study import Trial, load_study

kernels = sorted({one.get("architecture", "") for one in threadpool_info() if one["user_api"] == "blas"})
told = []
for line in sys.stdin:
    order = json.loads(line)
    study = load_study(order["name"], order["place"])
    for id, arm in order["trials"]:
        study.tell(Trial(id, arm), order["values"][arm])
    batch = study.ask(order["n"]) if order["n"] else None
    pending = [(trial.id, trial.arm) for trial in study.pending()]
    print(json.dumps({"kernels": kernels, "asked": [(t.id, t.arm) for t in batch or ()], "pending": pending,
                      "arms": [study.state.ids[study.state.arm_of(t)] for t in range(1, study.state.handed + 1)],
                      "sums": study.state.sums, "spent": study.spent, "over": batch is None}), flush=True)
"""


def architectures():
    return {one.get("architecture", "") for one in threadpool_info() if one["user_api"] == "blas"}


class Elsewhere:
    """The same study as another machine sees it: a process whose BLAS uses other kernels."""

    def __init__(self, kernel):
        environment = {**os.environ, "OPENBLAS_CORETYPE": kernel}
        self.process = subprocess.Popen(
            [sys.executable, "-c", WORKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        assert self.process.wait(30) == 0
        self.process.stdout.close()

    def do(self, study, trials=(), n=0, values=None):
        order = {"name": study.name, "place": str(study.storage.path), "n": n, "values": values or {}}
        self.process.stdin.write(json.dumps({**order, "trials": [(t.id, t.arm) for t in trials]}) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


@pytest.fixture(scope="module")
def elsewhere():
    with Elsewhere(foreign()) as other:
        yield other


def foreign():
    """A kernel that is not this machine's own and that any x86 processor has."""
    if not any(
        name in architectures() for name in ("SkylakeX", "Haswell", "Zen", "Nehalem", "Cooperlake", "Sapphirerapids")
    ):
        pytest.skip(f"NumPy's BLAS here, {sorted(architectures())}, has no kernels to choose from")
    return "Haswell" if architectures() == {"Nehalem"} else "Nehalem"


@pytest.mark.skipif(
    "BESTARM_OWN_KERNEL" not in os.environ, reason="no other kernel than the machine's own was asked for"
)
def test_these_tests_run_with_another_kernel_than_the_machines_own():
    assert architectures() == {os.environ["OPENBLAS_CORETYPE"]}
    assert architectures() != {os.environ["BESTARM_OWN_KERNEL"]}


def test_the_other_machine_has_other_kernels(elsewhere, tmp_path):
    study = create_study(np.eye(3), 9, "uniform", storage=tmp_path / "s.jsonl", seed=1)
    said = elsewhere.do(study)
    assert said["kernels"] != sorted(architectures())


# close calls: features whose designs and fits tie but for rounding
GRID = np.array([[x, y, 1.0] for x in (-1, -0.3, 0.1, 0.7, 1) for y in (-1.0, 0.2, 0.9)])


@pytest.mark.parametrize("policy", ["gse-lin-fwg", "gse-log-fwg", "auto", "od-linbai", "lingape", "gse-lin"])
def test_two_machines_that_share_a_study_agree_on_every_trial(policy, elsewhere, tmp_path):
    settings = {"noise_variance": 1.0} if policy == "lingape" else {}
    study = create_study(GRID, 120, policy, storage=tmp_path / "s.jsonl", study_name="s", seed=4, batch=15, **settings)
    values = {arm: float(place % 2) for place, arm in enumerate(study.arms)}
    handed, here = {}, True
    while True:
        if here:
            batch = study.ask(7)
            over, asked = batch is None, [(trial.id, trial.arm) for trial in batch or ()]
        else:
            said = elsewhere.do(study, n=7)
            over, asked = said["over"], [tuple(one) for one in said["asked"]]
        if over:
            break
        handed |= dict(asked)
        trials = list(study.pending())
        assert {(trial.id, trial.arm) for trial in trials} <= set(handed.items())
        half = trials[: len(trials) // 2]
        said = elsewhere.do(study, half, values=values)  # each tells some of what the other asked
        for trial in trials[len(half) :]:
            study.tell(trial, values[trial.arm])
        here = not here
    said = elsewhere.do(study)
    state = study.sync()
    assert said["arms"] == [handed[f"T{trial:04d}"] for trial in range(1, state.handed + 1)]
    assert said["sums"] == state.sums == load_study("s", tmp_path / "s.jsonl").state.sums
    assert said["spent"] == study.spent == state.total
