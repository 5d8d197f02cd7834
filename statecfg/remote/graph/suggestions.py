"""Find the valid names that a misspelled name probably means."""

from __future__ import annotations

from typing import Iterable, List


def did_you_mean(name: str, valid: Iterable[str]) -> str:
    """Return a question that suggests at most two valid names.

    :param name: the misspelled name
    :param valid: the names that are allowed
    :returns: such as "did you mean `mode`?"; "" if no valid name is similar
    """
    return question(nearest(name, valid))


def question(names: Iterable[str]) -> str:
    """Return "did you mean `a` or `b`?" for these names; "" without names."""
    quoted = " or ".join(f"`{name}`" for name in names)
    return f"did you mean {quoted}?" if quoted else ""


def nearest(name: str, valid: Iterable[str], distance: int = 2, most: int = 2) -> List[str]:
    """Return the valid names that are most similar to a misspelled name.

    :param name: the misspelled name; upper and lower case count as equal
    :param valid: the names that are allowed
    :param distance: maximum number of typing errors; a short name allows fewer
    :param most: maximum number of names to return
    :returns: the names, the most similar first
    """
    limit = min(distance, max(1, len(name) // 2))
    lowered = name.lower()
    pieces = _pieces(lowered, limit + 1)
    similar = []
    for candidate in valid:
        other = candidate.lower()
        if abs(len(other) - len(lowered)) <= limit and any(piece in other for piece in pieces):
            similar.append((typing_errors(lowered, other, limit), candidate))
    return [candidate for errors, candidate in sorted(similar) if errors <= limit][:most]


def _pieces(name: str, count: int) -> List[str]:
    """Split a name so that a similar name contains at least one of the pieces."""
    # count - 1 errors leave one piece intact. A short name has no useful pieces: "" is part of every name.
    size = len(name) // count
    return [name[i * size : (i + 1) * size] for i in range(count)] if size > 1 else [""]


def typing_errors(one: str, other: str, limit: int) -> int:
    """Return how many letters were added, omitted, replaced or swapped; limit + 1 if there are more than `limit`.

    This is the Damerau-Levenshtein distance (optimal string alignment).
    """
    start, end = 0, 0
    shorter = min(len(one), len(other))
    while start < shorter and one[start] == other[start]:
        start += 1
    while end < shorter - start and one[-1 - end] == other[-1 - end]:
        end += 1
    one, other = one[start : len(one) - end], other[start : len(other) - end]
    if max(len(one), len(other)) > 4 * limit:
        return limit + 1
    before: List[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        before, last, row = row, before, [i]
        for j, letter2 in enumerate(other, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (letter != letter2))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == letter2:
                cost = min(cost, last[j - 2] + 1)
            row.append(cost)
    return min(row[-1], limit + 1)
