"""
Messages: a transformer with its tokenizer in a pipeline
========================================================
``CostSensitiveAuxNet`` takes what a tokenizer returns, arrays by name, and adds a head to each
block of a transformer but the last. With the tokenizer in front, a pipeline takes texts.
"""

# %%
# Simulated messages to a bank, of twelve intents in four domains; "not" may be before either of two
# wishes. A message that is sent to the wrong team of the right domain costs 2 euros, to another
# domain 4; to ask a person costs 1.
import matplotlib.pyplot as plt
import numpy as np
import torch
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from torch import nn

from auxcst_sklearn import BayesMinimumRiskClassifier, CostSensitiveAuxNet
from auxcst_sklearn.costs import tree_distance_cost_matrix
from auxcst_sklearn.metrics import mean_cost

ACTIONS = {
    "card": ["block", "order", "raise the limit of"],
    "transfer": ["stop", "confirm", "repeat"],
    "loan": ["extend", "repay", "apply for"],
    "account": ["close", "open", "share"],
}
rng = np.random.default_rng(0)
labels = sorted(f"{domain}/{action}" for domain, actions in ACTIONS.items() for action in actions)


def message(intent):
    other = rng.choice([one for one in labels if one != intent])
    (domain, action), (no_domain, no_action) = intent.split("/"), other.split("/")
    parts = [f"i want to {action} my {domain}", f"i do not want to {no_action} my {no_domain}"]
    return " ".join([rng.choice(["hello", "please", "hi there"]), *rng.permutation(parts)])


y = rng.choice(labels, size=1600)
texts = [message(intent) for intent in y]
train, test, y_train, y_test = texts[:250], texts[250:], y[:250], y[250:]
costs = tree_distance_cost_matrix({label: label for label in labels})
M = np.c_[np.asarray(costs), np.full(len(labels), 1.0)]
known = {"cost_matrix": M, "classes": labels, "decisions": [*labels, "ask a person"]}

# %%
# A tokenizer as a step of a pipeline: here one number for each word. Those of transformers and
# tokenizers are used alike, with ``padding=True``.
NUMBERS = {word: n for n, word in enumerate(sorted({*" ".join(train).split()}), start=2)}


def tokenize(texts):
    rows = [[NUMBERS.get(word, 1) for word in text.split()] for text in texts]
    ids = np.array([row + [0] * (max(map(len, rows)) - len(row)) for row in rows])
    return {"input_ids": ids, "attention_mask": (ids > 0).astype(int)}


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.word, self.place = nn.Embedding(60, 32), nn.Embedding(40, 32)
        block = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True)
        self.blocks, self.last = nn.TransformerEncoder(block, num_layers=4), nn.Linear(32, 1)

    def forward(self, input_ids, attention_mask):
        x = self.word(input_ids) + self.place(torch.arange(input_ids.shape[1]))
        x = self.blocks(x, src_key_padding_mask=attention_mask == 0)
        weight = attention_mask.unsqueeze(-1).to(x.dtype)
        return self.last((x * weight).sum(1) / weight.sum(1))


training = {"max_epochs": 30, "learning_rate": 3e-3, "early_stopping": True, "random_state": 0}
network = CostSensitiveAuxNet(Encoder, **known, **training)
make_pipeline(FunctionTransformer(tokenize), network).fit(train, y_train)

# %%
# The cheaper way, which comes first: counts of words and pairs of words, logistic regression, and
# the rule of least expected cost. The last line is of at most 20 messages that people can read.
words = make_pipeline(TfidfVectorizer(ngram_range=(1, 2)), LogisticRegression(C=100, max_iter=1000))
tokens, names = tokenize(test), [*network.hidden_layers_, "output"]
stages = (network.decisions_[c.argmin(axis=1)] for c in network.staged_predict_cost(tokens))
decisions = dict(zip(names, stages))
rule = BayesMinimumRiskClassifier(words, **known).fit(train, y_train)
decisions["TF-IDF and the rule"] = rule.decide(test)
decisions["output, 20 asked"] = network.decide(tokens, capacity={"ask a person": 20})
paid = {name: mean_cost(y_test, chosen, **known) for name, chosen in decisions.items()}
for name, cost in paid.items():
    print(f"{cost:5.2f} EUR, {np.mean(decisions[name] == 'ask a person'):4.0%} asked: {name}")

# %%
# Cost of the decisions by each head. Counts of words and of pairs of words cannot tell which of two
# wishes "not" belongs to; the blocks can.
fig, axes = plt.subplots(figsize=(7, 3.5), layout="constrained")
axes.barh(list(paid), list(paid.values()), color=["#0072B2"] * 4 + ["#D55E00", "#56B4E9"])
axes.invert_yaxis()
axes.set(xlabel="EUR per message", xlim=(0, None))
plt.show()
