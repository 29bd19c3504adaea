"""
Messages: a transformer with its tokenizer in a pipeline
========================================================
``CostSensitiveAuxNet`` takes what a tokenizer returns, arrays by name, and adds a head to each
block of a transformer but the last. With the tokenizer in front, a pipeline takes texts.
"""

# %%
# Simulated messages to a bank, of twelve intents in four domains. The order of the words matters:
# "not" may be before either of two wishes. A message that is sent to the wrong team of the
# right domain costs 2 euros, to another domain 4; to ask a person costs 1.
import matplotlib.pyplot as plt
import numpy as np
import torch
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
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
intents = [f"{domain}/{action}" for domain, actions in ACTIONS.items() for action in actions]


def message(intent):
    """The intent, beside another one that is not meant."""
    (domain, action), (other, what) = (
        one.split("/") for one in (intent, rng.choice([i for i in intents if i != intent]))
    )
    meant, other = f"i want to {action} my {domain}", f"i do not want to {what} my {other}"
    parts = [meant, other] if rng.random() < 0.5 else [other, meant]
    return " ".join([rng.choice(["hello", "please", "hi there"]), *parts])


y = rng.choice(intents, size=1600)
texts = [message(intent) for intent in y]
costs = tree_distance_cost_matrix({intent: intent for intent in intents})
M = np.c_[np.asarray(costs), np.full(len(intents), 1.0)]
labels = sorted(intents)
known = {"cost_matrix": M, "classes": labels, "decisions": [*labels, "ask a person"]}
train, test, y_train, y_test = train_test_split(texts, y, train_size=250, random_state=0)
print(train[0], "->", y_train[0])

# %%
# A tokenizer as a step of a pipeline: here one number for each known word. Those of transformers
# and tokenizers are used alike, with ``padding=True``.


class WordTokenizer(TransformerMixin, BaseEstimator):
    def fit(self, texts, y=None):
        words = sorted({word for text in texts for word in text.split()})
        self.numbers_ = {word: number for number, word in enumerate(words, start=2)}
        return self

    def transform(self, texts):
        rows = [[self.numbers_.get(word, 1) for word in text.split()] for text in texts]
        longest = max(map(len, rows))
        ids = np.array([row + [0] * (longest - len(row)) for row in rows])
        return {"input_ids": ids, "attention_mask": (ids > 0).astype(int)}


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.word, self.place = nn.Embedding(60, 32), nn.Embedding(40, 32)
        block = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True)
        self.blocks = nn.TransformerEncoder(block, num_layers=4)
        self.last = nn.Linear(32, 1)

    def forward(self, input_ids, attention_mask):
        places = torch.arange(input_ids.shape[1], device=input_ids.device)
        x = self.word(input_ids) + self.place(places)
        x = self.blocks(x, src_key_padding_mask=attention_mask == 0)
        weight = attention_mask.unsqueeze(-1).to(x.dtype)
        return self.last((x * weight).sum(1) / weight.sum(1))


network = CostSensitiveAuxNet(
    Encoder, **known, max_epochs=30, learning_rate=3e-3, early_stopping=True, random_state=0
)
model = make_pipeline(WordTokenizer(), network).fit(train, y_train)
print("layers with a head:", network.hidden_layers_)

# %%
# The cheaper way, which comes first: counts of words and pairs of words, logistic regression, and
# the rule of least expected cost.
words = make_pipeline(TfidfVectorizer(ngram_range=(1, 2)), LogisticRegression(C=100, max_iter=1000))
rule = BayesMinimumRiskClassifier(words, **known).fit(train, y_train)

tokens = model[:-1].transform(test)
stages = [network.decisions_[c.argmin(axis=1)] for c in network.staged_predict_cost(tokens)]
decisions = dict(zip([*network.hidden_layers_, "output"], stages))
decisions["TF-IDF and the rule"] = rule.decide(test)
paid = {name: mean_cost(y_test, chosen, **known) for name, chosen in decisions.items()}
for name, cost in paid.items():
    asked = np.mean(decisions[name] == "ask a person")
    print(f"{cost:5.2f} EUR per message, {asked:4.0%} are asked: {name}")

# %%
# At most 20 of these messages can be asked: those for which it pays most.
limited = network.decide(tokens, capacity={"ask a person": 20})
n_asked = np.sum(limited == "ask a person")
print(f"{mean_cost(y_test, limited, **known):.2f} EUR per message, {n_asked} are asked")

# %%
# Cost of the decisions by each head. The first block sees words, the next ones which "not" belongs
# to which wish, and counts of words and pairs of words cannot tell.
fig, axes = plt.subplots(figsize=(7, 3.5), layout="constrained")
axes.barh(list(paid), list(paid.values()), color=["#0072B2"] * len(stages) + ["#D55E00"])
axes.invert_yaxis()
axes.set(xlabel="EUR per message", xlim=(0, None))
plt.show()
