"""What is asked of `bestarm run`, and what follows from that alone: the log it belongs to, and how to observe."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bestarm import live, spec


@dataclass(frozen=True)
class Request:
    """The options of `bestarm run`, under the names its command gives them."""

    arms_file: str
    budget: int
    id_column: str | None
    label: tuple[str, ...]
    feature: tuple[str, ...]
    exclude: tuple[str, ...]
    categorical: tuple[str, ...]
    scale: str
    intercept: bool
    simulate: str | None
    missing: str
    noise_variance: float | None
    pull: str | None
    pull_timeout: float | None
    model_name: str | None
    policy_name: str | None
    rounds: int | None
    eta: float | None
    minimize: bool
    seed: int | None
    log_file: Path | None
    report_file: Path | None
    style: str

    def about(self, arms: bytes, policy: Any) -> dict[str, Any]:
        """Return what a log belongs to; `arms` is whatever tells their table from others."""
        return {
            "arms": hashlib.sha256(arms).hexdigest()[:16],
            "policy": spec.to_dict(policy),
            "budget": self.budget,
            "minimize": self.minimize,
            "seed": self.seed,
        }

    def open_log(self, about: dict[str, Any]) -> tuple[live.Log | None, int]:
        """Return the log, if there is to be one, and the seed: the log's, the one given, or a fresh one."""
        if self.log_file:
            log = live.Log.open(self.log_file, about)
            return log, log.header["seed"]
        return None, live.fresh_seed() if self.seed is None else self.seed

    def observer(self) -> Callable[[str], float]:
        """Return the function from an arm's id to a reward that `--pull` names."""
        return observer(str(self.pull), self.pull_timeout)


def observer(pull: str, timeout: float | None) -> Callable[[str], float]:
    """Return a Python function named as MODULE:FUNCTION, or one that runs a command."""
    if "{id}" not in pull and ":" in pull and " " not in pull:
        return live.function(pull)
    return live.command(pull, timeout)
