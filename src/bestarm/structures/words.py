"""What explains the means, in a line a person can read."""

from collections.abc import Mapping

GROUPS = {
    "linear": "linear",
    "affine": "linear",
    "linear, smooth residual": "linear with a smooth residual",
    "affine, smooth residual": "linear with a smooth residual",
    "linear, one product": "linear with a product of two features",
    "affine, one product": "linear with a product of two features",
    "linear, one arm": "linear but for one arm",
    "affine, one arm": "linear but for one arm",
    "one feature": "a single feature",
    "one feature, any level": "a single feature",
    "exponential kernel": "smooth in the features",
    "Matérn kernel": "smooth in the features",
    "separate": "no structure: every arm for itself",
}
MOST = 0.9  # a group of this weight is named alone
LEAST = 0.05  # a group of less is not worth a word


def explained(weights: Mapping[str, float]) -> str:
    """Return in words which structure the weights `{kind of hypothesis: weight}` speak for.

    >>> explained({"linear": 0.6, "affine": 0.33, "separate": 0.07})
    'linear explains most of it: weight 0.93'
    >>> explained({"separate": 0.71, "Matérn kernel": 0.2, "affine": 0.04})
    'no structure: every arm for itself (weight 0.71), then smooth in the features (0.20)'
    """
    together: dict[str, float] = {}
    for kind, weight in weights.items():
        name = GROUPS.get(kind, kind)
        together[name] = together.get(name, 0.0) + weight
    if not together:
        return "nothing yet"
    (first, most), *others = sorted(together.items(), key=lambda item: -item[1])
    if ":" in first or most < MOST:
        rest = [f"then {name} ({_shown(weight)})" for name, weight in others if most < MOST and weight >= LEAST]
        return ", ".join([f"{first} (weight {_shown(most)})", *rest])
    return f"{first} explains most of it: weight {_shown(most)}"


def _shown(weight: float) -> str:
    return "over 0.99" if weight > 0.995 else f"{weight:.2f}"
