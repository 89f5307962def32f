"""What is asked of `bestarm run`, and what follows from that alone: the log it belongs to, and how to observe."""

import hashlib
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from bestarm import live, pulling, spec
from bestarm.cli.app import say
from bestarm.errors import BestArmError, PullError, RewardError
from bestarm.numbers import fresh_seed


class Refused(click.ClickException):
    """Nothing was begun."""

    exit_code = 2


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
    jobs: int
    retries: int
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
        """Return the log, if there is to be one, and the seed: the log's, the one given, or a fresh one.

        The log is closed when the command ends. While another run has it, this command ends with exit code 2.
        """
        if self.log_file is None:
            return None, fresh_seed() if self.seed is None else self.seed
        try:
            log = live.Log.open(self.log_file, about)
        except live.LogBusy as error:
            raise Refused(f"{error}; nothing was pulled") from error
        if context := click.get_current_context(silent=True):
            context.call_on_close(log.close)
        return log, log.header["seed"]

    def observer(self, ids: Iterable[str] = ()) -> Callable[[str], float]:
        """Return the function from an arm's id to a reward that `--pull` names; refuse `ids` it cannot be given."""
        return pulling.named(str(self.pull), self.pull_timeout, ids)


@contextmanager
def accounted(bandit: Any, budget: int, log: live.Log | None, best: Callable[[], str] = str) -> Iterator[None]:
    """Say what was spent and how to go on where pulls end early, by an error, Ctrl-C or SIGTERM."""

    def spent() -> str:
        again = f"run again to resume from {log.path}" if log else "with --log FILE the next run could resume"
        return f"{so_far()}; {again}"

    def so_far() -> str:
        return f"{getattr(bandit, 'made', 0)} of {budget} pulls were spent" + (best() and f"; best so far: {best()}")

    try:
        with pulling.ended_by_signals(), warnings.catch_warnings():
            warnings.filterwarnings("ignore", category=RuntimeWarning, module="(bestarm|numpy|scipy)\\.")  # overflows
            yield
    except (PullError, RewardError) as error:
        raise PullError(f"{error}\n{spent()}") from error
    except (BestArmError, OSError):
        raise
    except Exception as error:  # what a policy cannot digest
        why = f"{type(error).__name__}: {error}".removesuffix(": ")
        kept = f"; every reward is in {log.path}" if log else ""
        raise BestArmError(f"the policy failed: {why}; another one may do\n{so_far()}{kept}") from error
    except (KeyboardInterrupt, SystemExit):
        if isinstance(bandit, live.Live):
            say(f"stopped: {spent()}")
        raise
