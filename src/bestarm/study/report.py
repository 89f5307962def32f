"""What to say of a study on one page, for people who were not there."""

import json
import os
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bestarm.answer.answer import Answer, ArmEstimate, Assessment
from bestarm.answer.history import History
from bestarm.answer.wording import how_sure, number, percent
from bestarm.draw import charts
from bestarm.draw import page as pages
from bestarm.draw.page import Html
from bestarm.draw.style import MOST, can_draw, png, writable, write_whole
from bestarm.errors import InputError
from bestarm.linalg import Candidates
from bestarm.numbers import counted
from bestarm.simulate.intervals import NORMAL
from bestarm.study.evidence import assessment, evidence_of
from bestarm.study.history import look_back
from bestarm.study.state import StudyState
from bestarm.version import __version__

if TYPE_CHECKING:
    from bestarm.study.study import Study


def write_report(study: "Study", path: str | os.PathLike[str], progress: bool = False) -> None:
    """Write the page to an .html file, or how the arms compare to a .png file, whole or not at all."""
    target = checked(path)
    picture = target.suffix.lower() == ".png"
    write_whole(target, _picture(study) if picture else page(study, progress).encode())


def _picture(study: "Study") -> bytes:
    from bestarm.draw import figures  # with matplotlib, which a page does without

    return png(figures.draw_arms(assessment(study)))


def checked(path: str | os.PathLike[str]) -> Path:
    """Return where a report is to go, or refuse what is neither a page nor a picture, or cannot be made or written."""
    target = Path(path)
    if target.suffix.lower() not in (".html", ".htm", ".png"):
        raise InputError(f"a report is a .html or a .png file; given {target.name!r}")
    if target.suffix.lower() == ".png" and not can_draw():
        raise InputError("a .png report needs matplotlib: pip install 'bestarm-bai[plot]', or write a .html page")
    return writable(target)


def page(study: "Study", progress: bool = False) -> str:
    """Return the report as one HTML page without links, scripts or outside files."""
    state = study.sync()
    if not state.total and len(state.in_race) > 1:
        parts = [_nothing_yet(state)]
    else:
        found = assessment(study)
        parts = [*_answer(state, found), *_pictures(found, look_back(study, progress=progress)), *_check(state, found)]
        parts += [_failures(state), *_table(found)]
    return pages.page(f"{state.name}: report", *parts, _again(state))


def _nothing_yet(state: StudyState) -> Html:
    handed = 0 if state.round is None else state.round.handed
    out = f"{counted(handed, 'trial', ',')} {'is' if handed == 1 else 'are'} out." if handed else ""
    return pages.head(
        f"Study {state.name}", "No result yet",
        f"{len(state.in_race):,} arms are in the race and {_spent(state)} {_money(state)} are spent. {out} "
        "As soon as a result is told, this page says which arm looks best.",
    )  # fmt: skip


def _spent(state: StudyState) -> str:
    return f"{state.used:,.10g} of {state.budget:,.10g}"


def _money(state: StudyState) -> str:
    return "pulls" if state.cost is None else "of the budget"


def _answer(state: StudyState, assessment: Assessment) -> list[Html]:
    best = assessment.answer
    alone = len(assessment.estimates) == 1
    verdict = "It is the only arm, so there was nothing to compare it with." if alone else _verdict(best)
    standing = "The study is over." if state.over else "The study is still running: this is the answer so far."
    low, high = (number(end) for end in best.interval)
    gone = len(state.ids) - len(state.in_race)
    told = f"results told, {best.pulls:,} of them on this arm; {len(state.open_trials()):,} awaited"
    facts = [
        (number(best.corrected), f"its mean; with 95 % probability from {low} to {high}"),
        (percent(best.p_best), f"chance that it has the {best.goal.word} mean"),
        (_regret(best), "expected regret: how far it is behind the best, on average"),
        (_spent(state), f"{_money(state)} spent"),
        *([] if best.bound is None else [(number(min(best.bound, 1.0)), _bound_words(best.bound))]),
        (f"{best.told:,}", told),
        (f"{len(state.in_race):,}", "arms in the race" + (f", {gone:,} withdrawn" if gone else "")),
    ]
    return [
        pages.head(f"Study {state.name}: the best arm is", _named(best), f"{verdict} {standing}"),
        pages.bar(best.p_best, percent(best.p_best)),
        pages.facts(facts),
        pages.warnings(best.warnings),
    ]


def _named(best: Answer) -> str:
    """Return an arm's id with the columns to show beside it."""
    return " ".join([best.arm, *(cell for cell in best.about.values() if isinstance(cell, str))])


def _regret(best: Answer) -> str:
    """Return the expected regret; a thousandth of the interval is nothing."""
    low, high = best.interval
    return number(best.expected_regret) if best.expected_regret > (high - low) / 1000 else "about 0"


def _bound_words(bound: float) -> str:
    if bound >= 1:
        return "bound on the error: the theorem says nothing at this budget"
    return "bound on the error, were the gap as estimated"


def _verdict(best: Answer) -> str:
    second = best.runner_up
    words = f"It is {how_sure(best.p_best)} ({percent(best.p_best)})."
    return words if second is None else f"{words} The runner-up is {second} ({percent(best.chances[second])})."


def _pictures(assessment: Assessment, history: History) -> list[Html]:
    best, count = assessment.answer.arm, len(assessment.estimates)
    some = f" The {MOST} likeliest of {count:,} are shown." if count > MOST else ""
    return [
        pages.section(
            "How the arms compare",
            "Dots are estimates that allow for the luck of the winner; lines hold the true mean with probability 95 %; "
            f"the upright stroke is what the model fits before that.{some}",
            pages.drawing(charts.arms(assessment), "estimates, chances and pulls by arm"),
        ),
        pages.section(
            "How the race went",
            "Until when each arm was in the race; a cross marks where it left, a circle that it is still in.",
            pages.drawing(charts.race(history, best), "elimination of arms over the results"),
        ),
        pages.section(
            "What the results bought",
            "Looking back: had the study ended earlier, how far behind the best its choice would have been expected to "
            "be, and how sure. Circles: the leader was the arm recommended now; squares: it was another.",
            pages.drawing(charts.certainty(history, best), "expected regret and chance over results"),
        ),
        pages.section("How results came in", "", pages.drawing(charts.arrivals(history), "results over time")),
    ]


def _check(state: StudyState, assessment: Assessment) -> list[Html]:
    fit = assessment.fit
    if fit.p is None:
        verdict = f"{fit.words[0].upper()}{fit.words[1:]}."
    else:
        good = "No sign against the model" if not fit.bad else "The model does not fit"
        verdict = f"{good}: {fit.words}, p = {fit.p:.2g}. (Below 0.01 it would be called a bad fit.)"
    label = "means of the arms against the model"
    return [
        pages.section("Does the model fit?", f"Model: {assessment.answer.believes}. {verdict}"),
        pages.drawing(charts.fit(_measured(state)), label, small=True),
    ]


def _measured(state: StudyState) -> list[tuple[float, ...]]:
    """Return (fitted mean, mean of the results, low, high) of the arms measured, if a model relates them."""
    if not state.rewards.model.structured:
        return []
    found, natural, model, law = evidence_of(state), state.rewards.natural, state.rewards.model, state.rewards.law
    known = found.known
    fit = model.fit(Candidates.of(found.features), known)
    pulled = known.counts > 0
    counts, seen = known.counts[pulled], known.means[pulled]
    within, freedom = known.within.sum(), (counts - 1).sum()
    variance = state.noise_variance if state.noise_variance is not None else within / freedom if freedom > 0 else np.nan
    variance = law.variance_at(law.near(fit.score[pulled]), variance)
    reach = NORMAL * np.sqrt(variance / counts)
    ends = np.sort(natural(np.clip([seen - reach, seen + reach], *law.limits)), axis=0)
    rows = np.stack([natural(fit.mean[pulled]), natural(seen), *ends], axis=1)
    return [tuple(row) for row in rows[np.argsort(-counts)][:200].tolist()]


def _failures(state: StudyState) -> Html:
    reasons = Counter(str(failure["reason"]) for failure in state.failures)
    refunded = sum(bool(failure["refund"]) for failure in state.failures)
    failed = counted(len(state.failures), "trial", ",")
    note = f"{failed} could not be made; {refunded:,} {'was' if refunded == 1 else 'were'} refunded and asked again."
    rows = [(reason, f"{times:,}") for reason, times in reasons.most_common(20)]
    return pages.section("Failures", note, pages.table(["reason", "times"], rows, ["times"])) if rows else Html()


def _table(assessment: Assessment) -> list[Html]:
    best, heads = assessment.answer.arm, ("arm", *COLUMNS)
    rows = [[pages.strong(cell) if e.arm == best else cell for cell in _row(e)] for e in assessment.estimates]
    first, rest = (pages.table(heads, some, COLUMNS) for some in (rows[:MOST], rows[MOST:]))
    more = [pages.folded(f"The other {counted(len(rows) - MOST, 'arm', ',')}", rest)] if len(rows) > MOST else []
    return [pages.section("All arms", "", first), *more]


COLUMNS = ("chance of being best", "mean", "from", "to", "before shrinking", "results")


def _row(e: ArmEstimate) -> list[str]:
    return [e.arm, percent(e.chance), *map(number, (e.corrected, e.low, e.high, e.value)), f"{e.pulls:,}"]


def _again(state: StudyState) -> Html:
    named = state.first.get("policy_name", "see below")
    about = {
        "study": state.name,
        "bestarm": __version__,
        "written": datetime.now(UTC).isoformat(timespec="seconds"),
        "policy": named,
        "seed": state.seed,
        "budget": state.budget,
        "noise_variance": state.noise_variance,
        "options": state.options,
        "policy in full": state.first["policy"],
    }
    return pages.section(
        "How to run it again",
        f"Policy {named}, seed {state.seed}, budget {state.budget:,.10g}, bestarm {__version__}. "
        "The same arms, seed and answers give the same questions.",
        pages.folded("Everything in full", pages.literal(json.dumps(about, indent=1))),
    )
