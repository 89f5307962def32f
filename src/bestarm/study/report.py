"""One self-contained page on a study, for people who were not there."""

import json
import os
from collections.abc import Sequence
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bestarm import catalog
from bestarm.answer.answer import Answer, ArmEstimate, Assessment, percent
from bestarm.answer.history import History
from bestarm.draw import figures
from bestarm.draw.style import MOST, STYLE, number, png, write_whole
from bestarm.errors import InputError
from bestarm.linalg import Candidates
from bestarm.models.glm import FAR, GLM, Identity, Logistic, Poisson
from bestarm.models.linear import Linear
from bestarm.models.weighed import Weighed
from bestarm.study.evidence import assessment, features_of
from bestarm.study.history import look_back
from bestarm.study.state import StudyState
from bestarm.version import __version__

if TYPE_CHECKING:
    from bestarm.study.study import Study

NORMAL = 1.959964  # 97.5 % quantile of the normal distribution

LOOK = """
h2 { font-size: 1.1rem; font-weight: 600; margin: 2rem 0 .2rem; border-top: 1px solid #ddd; padding-top: 1rem; }
.note { color: #555; font-size: .9rem; margin: .1rem 0 .6rem; }
.wary { border-left: 4px solid #a84500; padding: .3rem .9rem; margin: .8rem 0; background: #fff6ef; }
.chance { height: .9rem; background: #e8e8e8; margin: .4rem 0; }
.chance i { display: block; height: 100%; background: #a84500; }
td { overflow-wrap: anywhere; } tr.best td { font-weight: 650; }
figure { margin: 0; break-inside: avoid; } figure.small { max-width: 32rem; }
@media print { h2 { break-after: avoid; } body { max-width: none; font-size: 11pt; } }
* { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
"""


def write_report(study: "Study", path: str | os.PathLike[str]) -> None:
    """Write the page to an .html file, or how the arms compare to a .png file, whole or not at all."""
    target = checked(path)
    picture = target.suffix.lower() == ".png"
    write_whole(target, png(figures.draw_arms(assessment(study))) if picture else page(study).encode())


def checked(path: str | os.PathLike[str]) -> Path:
    """Return where a report is to go, or refuse what is neither a page nor a picture."""
    target = Path(path)
    if target.suffix.lower() not in (".html", ".htm", ".png"):
        raise InputError(f"a report is a .html or a .png file; given {target.name!r}")
    return target


def page(study: "Study") -> str:
    """Return the report as one HTML page without links, scripts or outside files."""
    state = study.sync()
    if not state.total and sum(state.present) > 1:
        body = _nothing_yet(state)
    else:
        found, history = assessment(study), look_back(study)
        body = _answer(state, found) + _body(state, found, history)
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{_safe(state.name)}: report</title><style>{STYLE}{LOOK}</style></head><body>
{body}
{_again(state)}
</body></html>
"""


def _safe(text: Any) -> str:
    """Return any text fit for a page; what cannot be written in UTF-8 is replaced."""
    return escape(str(text).encode("utf-8", "replace").decode("utf-8"))


def _nothing_yet(state: StudyState) -> str:
    out = f"{state.round.handed:,} trials are out." if state.round is not None and state.round.handed else ""
    return (
        f'<h1>Study {_safe(state.name)}</h1><p class="answer">No result yet</p>'
        f'<p class="sub">{len(_in_race(state)):,} arms are in the race and {_spent(state)}. {out} '
        "As soon as a result is told, this page says which arm looks best.</p>"
    )


def _in_race(state: StudyState) -> list[str]:
    return [arm for arm, there in zip(state.ids, state.present, strict=True) if there]


def _spent(state: StudyState) -> str:
    word = "pulls" if state.cost is None else "of the budget"
    return f"{state.used:,.10g} of {state.budget:,.10g} {word} are spent"


def how_sure(p_best: float) -> str:
    """Return a probability in words.

    >>> how_sure(0.97), how_sure(0.3)
    ('very likely the best', 'the best guess, but more likely than not another one is better')
    """
    for least, words in SURE:
        if p_best >= least:
            return words
    return "the best guess, but more likely than not another one is better"


SURE = (
    (0.99, "almost certainly the best"),
    (0.95, "very likely the best"),
    (0.8, "probably the best"),
    (0.5, "more likely than not the best"),
)


def _answer(state: StudyState, assessment: Assessment) -> str:
    best = assessment.answer
    alone = len(assessment.estimates) == 1
    verdict = "It is the only arm, so there was nothing to compare it with." if alone else _verdict(best)
    standing = "The study is over." if state.over else "The study is still running: this is the answer so far."
    goal = "smallest" if state.rewards.minimize else "largest"
    low, high = (number(end) for end in best.interval)
    facts = [
        (number(best.corrected), f"its mean; with 95 % probability from {low} to {high}"),
        (percent(best.p_best), f"chance that it has the {goal} mean"),
        (_regret(best), "expected regret: how far it is behind the best, on average"),
        (f"{state.used:,.10g} of {state.budget:,.10g}", "pulls spent" if state.cost is None else "of the budget spent"),
        *([] if best.bound is None else [(number(min(best.bound, 1.0)), _bound_words(best.bound))]),
        (f"{best.told:,}", f"results told, {best.pulls:,} of them on this arm; {_awaited(state):,} awaited"),
        (f"{len(assessment.estimates):,}", "arms in the race" + _withdrawn(state)),
    ]
    wary = "".join(f'<p class="wary">{_safe(sentence)}</p>' for sentence in best.warnings)
    cells = "".join(f"<div><b>{value}</b><span>{label}</span></div>" for value, label in facts)
    bar = f'<i style="width:{100 * best.p_best:.1f}%"></i>'
    return (
        f'<h1>Study {_safe(state.name)}: the best arm is</h1><p class="answer">{_safe(_named(best))}</p>'
        f'<p class="sub">{verdict} {standing}</p>'
        f'<div class="chance" role="img" aria-label="{percent(best.p_best)}">{bar}</div>'
        f'<div class="facts">{cells}</div>{wary}'
    )


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


def _awaited(state: StudyState) -> int:
    return len(state.open_trials())


def _verdict(best: Answer) -> str:
    second = best.runner_up
    words = f"It is {how_sure(best.p_best)} ({percent(best.p_best)})."
    if second is None:
        return words
    return f"{words} The runner-up is {_safe(second)} ({percent(best.chances[second])})."


def _withdrawn(state: StudyState) -> str:
    gone = len(state.present) - sum(state.present)
    return f", {gone:,} withdrawn" if gone else ""


def _body(state: StudyState, assessment: Assessment, history: History) -> str:
    best = assessment.answer
    many = len(assessment.estimates) > MOST
    some = f" The {MOST} likeliest of {len(assessment.estimates):,} are shown." if many else ""
    parts = [
        _section(
            "How the arms compare",
            "Dots are estimates that allow for the luck of the winner; lines hold the true mean with probability 95 %; "
            f"the short bar is what the model fits before that.{some}",
            figures.inline(figures.draw_arms, assessment, label="estimates, chances and pulls by arm"),
        ),
        _section(
            "How the race went",
            "Until when each arm was in the race; a cross marks where it left, a circle that it is still in.",
            figures.inline(figures.draw_race, history, best.arm, label="elimination of arms over the results"),
        ),
        _section(
            "What the results bought",
            "Looking back: had the study ended earlier, how far behind the best its choice would have been expected to "
            "be, and how sure. Circles: the leader was the arm recommended now; squares: it was another.",
            figures.inline(figures.draw_certainty, history, best.arm, label="expected regret and chance over results"),
        ),
        _section("How results came in", "", figures.inline(figures.draw_arrivals, history, label="results over time")),
        _check(state, assessment),
        _failures(state),
        _table(assessment),
    ]
    return "".join(parts)


def _section(title: str, note: str, figure: str, kind: str = "") -> str:
    if not figure:
        return ""
    return f'<h2>{title}</h2><p class="note">{note}</p><figure class="{kind}">{figure}</figure>'


def _check(state: StudyState, assessment: Assessment) -> str:
    fit = assessment.fit
    if fit.p is None:
        verdict = f"{fit.words[0].upper()}{fit.words[1:]}."
    else:
        good = "No sign against the model" if not fit.bad else "The model does not fit"
        verdict = f"{good}: {_safe(fit.words)}, p = {fit.p:.2g}. (Below 0.01 it would be called a bad fit.)"
    picture = figures.inline(figures.draw_fit, _measured(state), label="means of the arms against the model")
    return (
        f'<h2>Does the model fit?</h2><p class="note">Model: {_safe(assessment.answer.believes)}. {verdict}</p>'
        f'<figure class="small">{picture}</figure>'
    )


def _measured(state: StudyState) -> list[tuple[float, ...]]:
    """Return (fitted mean, mean of the results, low, high) of the arms measured, if a model relates them."""
    if not isinstance(state.rewards.model, Linear | GLM | Weighed):
        return []
    known, natural, model = state.known(), state.rewards.natural, state.rewards.model
    fit = model.fit(Candidates.of(features_of(state)), known)
    pulled = known.counts > 0
    counts, sums, squares = known.counts[pulled], known.sums[pulled], known.squares[pulled]
    within, freedom = np.maximum(squares - sums**2 / counts, 0).sum(), (counts - 1).sum()
    variance = state.noise_variance if state.noise_variance is not None else within / freedom if freedom > 0 else np.nan
    if isinstance(model, GLM) and not isinstance(model.link, Identity):
        variance = model.link.slope(np.clip(fit.score[pulled], -FAR, FAR))
    reach, seen = NORMAL * np.sqrt(variance / counts), sums / counts
    limits = LIMITS.get(type(state.rewards.link), (-np.inf, np.inf))
    ends = np.sort(natural(np.clip([seen - reach, seen + reach], *limits)), axis=0)
    rows = np.stack([natural(fit.mean[pulled]), natural(seen), *ends], axis=1)
    return [tuple(row) for row in rows[np.argsort(-counts)][:200].tolist()]


LIMITS = {Logistic: (0.0, 1.0), Poisson: (0.0, np.inf)}  # what means can be


def _failures(state: StudyState) -> str:
    if not state.failures:
        return ""
    reasons: dict[str, int] = {}
    for failure in state.failures:
        reasons[str(failure["reason"])] = reasons.get(str(failure["reason"]), 0) + 1
    ranked = sorted(reasons.items(), key=lambda item: -item[1])
    rows = "".join(f'<tr><td>{_safe(reason)}</td><td class="n">{n:,}</td></tr>' for reason, n in ranked[:20])
    refunded = sum(bool(failure["refund"]) for failure in state.failures)
    return (
        f'<h2>Failures</h2><p class="note">{len(state.failures):,} trials could not be made; {refunded:,} were '
        f'refunded and asked again.</p><table><thead><tr><th>reason</th><th class="n">times</th></tr></thead>'
        f"<tbody>{rows}</tbody></table>"
    )


def _table(assessment: Assessment) -> str:
    best = assessment.answer.arm
    rows = [_row(e, e.arm == best) for e in assessment.estimates]
    first = f"<h2>All arms</h2>{_lined(rows[:MOST])}"
    rest = rows[MOST:]
    return first + (f"<details><summary>The other {len(rest):,} arms</summary>{_lined(rest)}</details>" if rest else "")


def _lined(rows: Sequence[str]) -> str:
    heads = ("arm", "results", "mean", "from", "to", "before shrinking", "chance of being best")
    marks = "".join(f'<th class="{"" if head == "arm" else "n"}">{head}</th>' for head in heads)
    return f"<table><thead><tr>{marks}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def _row(e: ArmEstimate, best: bool) -> str:
    cells = (f"{e.pulls:,}", *map(number, (e.corrected, e.low, e.high, e.value)), percent(e.chance))
    kind = ' class="best"' if best else ""
    return f"<tr{kind}><td>{_safe(e.arm)}</td>" + "".join(f'<td class="n">{cell}</td>' for cell in cells) + "</tr>"


def _again(state: StudyState) -> str:
    named = [name for name, entry in catalog.ENTRIES.items() if entry.policy == state.policy]
    about = {
        "study": state.name,
        "bestarm": __version__,
        "written": datetime.now(UTC).isoformat(timespec="seconds"),
        "policy": named[0] if named else "see below",
        "seed": state.seed,
        "budget": state.budget,
        "noise_variance": state.noise_variance,
        "options": state.options,
        "policy in full": state.first["policy"],
    }
    return (
        f"<h2>How to run it again</h2>"
        f'<p class="note">Policy {_safe(about["policy"])}, seed {state.seed}, budget {state.budget:,.10g}, '
        f"bestarm {__version__}. The same arms, seed and answers give the same questions.</p>"
        f"<details><summary>Everything in full</summary><pre>{_safe(json.dumps(about, indent=1))}</pre></details>"
    )
