from collections import Counter

from benchmarks.common.class_tree import caltech256_taxonomy


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
