import numpy as np
import pytest

from auxcst_sklearn.costs import binary_cost_matrices, cost_vectors

FRAUD = {"classes": ["good", "fraud"], "pos_label": "fraud"}


OUTCOMES = {"fp_cost": 1, "fn_cost": 2, "tp_cost": 3, "tn_cost": 4}


def test_scalars_make_one_matrix_in_the_order_of_the_sorted_labels():
    found = binary_cost_matrices(**OUTCOMES, **FRAUD)
    last = binary_cost_matrices(**OUTCOMES, classes=[0, 1], pos_label=1)

    np.testing.assert_array_equal(found, [[3, 2], [1, 4]])  # fraud, good
    np.testing.assert_array_equal(last, [[4, 1], [2, 3]])


@pytest.mark.parametrize("argument", ["fp_cost", "fn_cost", "tp_cost", "tn_cost"])
def test_one_array_is_enough_for_a_matrix_per_sample(argument):
    several = [9.0, 8.0, 7.0]

    found = binary_cost_matrices(**{**OUTCOMES, argument: several}, **FRAUD)

    assert found.shape == (3, 2, 2)
    for matrix, value in zip(found, several, strict=True):
        expected = binary_cost_matrices(**{**OUTCOMES, argument: value}, **FRAUD)
        np.testing.assert_array_equal(matrix, expected)


def test_cost_vectors_take_the_row_of_the_true_class():
    cost = binary_cost_matrices(fp_cost=5, fn_cost=[10, 20, 30], **FRAUD)

    vectors = cost_vectors(["good", "fraud", "fraud"], cost)

    np.testing.assert_array_equal(vectors, [[5, 0], [0, 20], [0, 30]])


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"classes": [0, 1, 2]}, r"classes=\[0, 1, 2\]; expected the two labels"),
        ({"classes": ["fraud", "fraud"]}, "expected the two labels"),
        ({"pos_label": "Fraud"}, r"pos_label='Fraud' is not among the classes \['fraud', 'good'\]"),
        ({"fp_cost": [1, 2, 3], "fn_cost": [1, 2]}, "inconsistent numbers of samples"),
        ({"fn_cost": [1, np.inf]}, "fn_cost has shape .* 1 values that are not finite"),
        ({"fn_cost": [[1]]}, r"fn_cost has shape \(1, 1\)"),
        ({"tp_cost": "free"}, "tp_cost cannot be read as numbers"),
        ({"pos_label": np.array(["fraud", "good"])}, "pos_label=.* is not among the classes"),
        ({"fn_cost": np.ma.masked_greater([1.0, 1e9], 2)}, "fn_cost .* contains 1 masked values"),
        ({"fn_cost": np.array([1j])}, "fn_cost .* of type complex128"),
        ({"fn_cost": np.array(["2026-01-01"], "M8[D]")}, "fn_cost .* of type datetime64"),
    ],
)
def test_mistakes_are_named(changed, message):
    with pytest.raises(ValueError, match=message):
        binary_cost_matrices(**{"fp_cost": 1, "fn_cost": 1, **FRAUD, **changed})
