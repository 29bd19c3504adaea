from collections import Counter

import numpy as np

from auxcst_sklearn.datasets import caltech256_taxonomy
from auxcst_sklearn.datasets._class_tree import read_taxonomy

# Superclass of each CIFAR-100 class, as the files of the data set pair them.
CIFAR100_SUPERCLASS = """
 4  1 14  8  0  6  7  7 18  3  3 14  9 18  7 11  3  9  7 11  6 11  5 10  7  6 13 15  3 15  0 11  1
10 12 14 16  9 11  5  5 19  8  8 15 13 14 17 18 10 16  4 17  4  2  0 17  4 18 17 10  3  2 12 12 16
12  1  9 19  2 10  0  1 16 12  9 13 15 13 16 19  2  4  6 19  5  5  8 19 18  1  2 15  6  0 17  8 14
13
"""


def edges(path, other):
    """Count the edges between two leaves of a tree."""
    shared = 0
    while path[shared] == other[shared]:
        shared += 1
    return len(path) + len(other) - 2 * shared


def test_caltech256_has_each_category_once():
    paths = caltech256_taxonomy()
    assert len(paths) == 256
    assert len({path[-1] for path in paths}) == 256
    assert {path[0] for path in paths} == {"animate", "inanimate"}


def test_caltech256_follows_the_category_numbers():
    names = [path[-1] for path in caltech256_taxonomy()]
    assert [names[number - 1] for number in (1, 4, 56, 129, 218, 250, 251, 256)] == [
        "ak47",
        "baseball-bat",
        "dog",
        "leopards-101",
        "tennis-racket",
        "zebra",
        "airplanes-101",
        "toad",
    ]
    # Categories 1 to 250 are alphabetical, but for a few neighbours; the last six were added later.
    initials = [name[0].lower() for name in names]
    assert initials[:250] == sorted(initials[:250])


def test_caltech256_distances():
    path = {path[-1]: path for path in caltech256_taxonomy()}
    assert edges(path["baseball-bat"], path["baseball-glove"]) == 2
    assert edges(path["baseball-bat"], path["tennis-racket"]) == 4
    assert edges(path["mountain-bike"], path["skateboard"]) == 3
    assert edges(path["sheet-music"], path["harp"]) == 3
    assert edges(path["dog"], path["iris"]) == 6


def test_caltech256_counts_per_node():
    count = Counter(node for path in caltech256_taxonomy() for node in path[:-1])
    expected = {"land": 24, "air": 9 + 5, "insects": 8, "bicycles": 3, "tennis": 3, "apparel": 10}
    assert {node: count[node] for node in expected} == expected
    assert count["animate"] + count["inanimate"] == 256


def test_cifar100_has_twenty_superclasses_of_five():
    paths = read_taxonomy("cifar100_taxonomy.txt")
    superclasses, classes = zip(*paths)
    names, index = np.unique(superclasses, return_inverse=True)
    np.testing.assert_array_equal(index, np.fromstring(CIFAR100_SUPERCLASS, dtype=int, sep=" "))
    assert len(names) == 20
    assert set(Counter(superclasses).values()) == {5}
    assert list(classes) == sorted(set(classes))  # labels follow the alphabet
    assert dict(zip(classes, superclasses))["lawn_mower"] == "vehicles_2"
