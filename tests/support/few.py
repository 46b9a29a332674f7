"""A few cases of a product of parameters in which all is shown that some case must show."""

from collections import Counter


def few(cases, features, left=None):
    """As few of `cases` as have all features `left`: by itself, all that they have together.

    A case is a tuple; where several would do, it is one of those whose first field was taken least.
    """
    shown = [(case, features(case)) for case in cases]
    left = set().union(*(all_ for _, all_ in shown)) if left is None else left
    taken = Counter()
    while left:
        best, its = max(shown, key=lambda one: (len(left & one[1]), -taken[one[0][0]]))
        left -= its
        taken[best[0]] += 1
        yield best
