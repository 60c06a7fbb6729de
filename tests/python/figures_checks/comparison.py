"""A figure beside the expected one, and spreads of values."""

import math


def same(found, expected, what):
    if isinstance(expected, float) and found is not None:
        assert math.isclose(found, expected, rel_tol=1e-9, abs_tol=1e-9), f"{what}: {found} is not {expected}"
    else:
        assert found == expected, f"{what}: {found} is not {expected}"


def spread_of(values):
    values = sorted(values)
    at = lambda fraction: values[math.floor((len(values) - 1) * fraction + 0.5)]
    return {"min": at(0.0), "p10": at(0.1), "median": values[len(values) // 2], "p90": at(0.9), "max": at(1.0)}


def same_spread(found, values, what):
    for name, expected in spread_of(values).items():
        same(found[name], float(expected), f"{what}, {name}")


def same_weighted_spread(found, values, what):
    """Of values with weights: half of the weight is at the median or below it."""
    values, whole = sorted(values), sum(weight for _, weight in values)
    for name, fraction in (("min", 0.0), ("p10", 0.1), ("median", 0.5), ("p90", 0.9), ("max", 1.0)):
        below, expected = 0, values[-1][0]
        for value, weight in values:
            below += weight
            if below >= fraction * whole:
                expected = value
                break
        same(found[name], float(expected), f"{what}, {name}")
