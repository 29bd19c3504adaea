"""
Images: a CNN on digits
=======================
``CostSensitiveAuxCNN`` takes raw images, and estimates for each image the cost of every decision.
"""

# %%
# The images show the last digit of a meter. A reading that is too high causes a complaint and
# costs three euros per unit; one that is too low loses one euro per unit. Half of the images are
# used for training.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.svm import SVC

from auxcst_sklearn import BayesMinimumRiskClassifier, CostSensitiveAuxCNN
from auxcst_sklearn.metrics import cost_difference, mean_cost

digits = load_digits()
images, y = digits.images.astype(np.float32) / 16, digits.target
off = np.arange(10) - np.arange(10)[:, np.newaxis]  # read minus true
M = np.where(off > 0, 3.0 * off, -1.0 * off)
images, images_test, y, y_test = train_test_split(
    images, y, train_size=0.5, stratify=y, random_state=0
)

# %%
# The other models use the pixels as columns;
# the support vector machine gets its probabilities by temperature scaling (scikit-learn 1.8 or
# later).
cnn = CostSensitiveAuxCNN((16, 32), cost_matrix=M, random_state=0)
cnn.fit(images, y)
flat, flat_test = images.reshape(len(y), -1), images_test.reshape(len(y_test), -1)
logistic = BayesMinimumRiskClassifier(LogisticRegression(max_iter=500), cost_matrix=M).fit(flat, y)
svc = BayesMinimumRiskClassifier(SVC(), cost_matrix=M, calibration="temperature", cv=3).fit(flat, y)
read = {
    "CNN": cnn.predict(images_test),
    "support vectors": svc.predict(flat_test),
    "logistic regression": logistic.predict(flat_test),
}
for name, digit in read.items():
    print(
        f"{name}: {mean_cost(y_test, digit, cost_matrix=M):.3f} EUR per digit, "
        f"{np.mean(digit != y_test):.1%} wrong"
    )
print(
    "CNN minus support vectors:",
    cost_difference(y_test, read["CNN"], read["support vectors"], cost_matrix=M),
)

# %%
# The eight test digits with the most expensive mistakes of the CNN, and the expected cost of each
# reading: where two bars are low, the digit is ambiguous, and the CNN chooses the cheaper
# mistake.
paid = M[y_test, read["CNN"]]
expected = cnn.predict_cost(images_test)
fig, axes = plt.subplots(4, 4, figsize=(9, 7), layout="constrained")
for k, i in enumerate(np.argsort(-paid, kind="stable")[:8]):
    picture, bars = axes[k // 2, 2 * (k % 2) : 2 * (k % 2) + 2]
    picture.imshow(images_test[i], cmap="gray")
    picture.set_axis_off()
    picture.set_title(f"is {y_test[i]}, paid {paid[i]:.0f} EUR", fontsize="small")
    colors = np.where(np.arange(10) == read["CNN"][i], "#D55E00", "#0072B2")
    bars.bar(range(10), expected[i], color=colors)
    bars.set_xticks(range(10))
    bars.set_title("expected cost (EUR) by reading", fontsize="small")
plt.show()

# %%
# The support vector machine makes hardly more mistakes than the CNN, but more expensive ones; the
# interval of the difference, printed above, is below zero.
