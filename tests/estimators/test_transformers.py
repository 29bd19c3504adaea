"""Networks of transformers, tiny and with random weights: texts, images, sound, series."""

import pickle
from functools import partial

import numpy as np
import pytest

from auxcst_sklearn import CostSensitiveAuxNet

transformers = pytest.importorskip("transformers")

N, LENGTH, WORDS = 60, 10, 40
rng = np.random.default_rng(0)
y = np.arange(N) % 3
mask = (np.arange(LENGTH) < rng.integers(3, LENGTH + 1, (N, 1))).astype(np.int64)
ids = mask * rng.integers(3, WORDS, (N, LENGTH))
TEXTS = {"input_ids": ids, "attention_mask": mask}
IMAGES = rng.normal(size=(N, 3, 16, 16)).astype(np.float32)
SERIES = rng.normal(size=(N, 32, 2)).astype(np.float32)
SOUND = rng.normal(size=(N, 400)).astype(np.float32)

SIZES = {"hidden_size": 16, "num_hidden_layers": 3, "num_attention_heads": 2}
SIZES |= {"intermediate_size": 32, "num_labels": 3}
TEXT = {**SIZES, "vocab_size": WORDS, "max_position_embeddings": 40, "pad_token_id": 0}
IMAGE = {**SIZES, "image_size": 16, "patch_size": 4}
STAGES = {"depths": [1, 2], "hidden_sizes": [8, 16], "num_labels": 3}
WAV = {**SIZES, "conv_dim": (8, 8), "conv_stride": (5, 4), "conv_kernel": (10, 8)}
WAV |= {"num_feat_extract_layers": 2, "num_conv_pos_embeddings": 8, "layerdrop": 0.3}
WAV |= {"num_conv_pos_embedding_groups": 2, "classifier_proj_size": 8, "mask_time_prob": 0.0}
PATCH = {"num_input_channels": 2, "context_length": 32, "patch_length": 8, "patch_stride": 8}
PATCH |= {"num_hidden_layers": 3, "d_model": 16, "num_attention_heads": 2, "ffn_dim": 32}
PATCH |= {"num_targets": 3, "use_cls_token": True}
DISTIL = {"dim": 16, "n_layers": 3, "n_heads": 2, "hidden_dim": 32, "vocab_size": WORDS}
GPT2 = {"n_embd": 16, "n_layer": 3, "n_head": 2, "vocab_size": WORDS, "pad_token_id": 0}
SMALL = {**TEXT, "embedding_size": 16}
FEW = {"num_labels": 3}

# Of each architecture: its configuration, X, the features that heads read, and the paths of the
# blocks with a head.
ALL = {
    "Bert": (TEXT, TEXTS, [16, 16], "bert.encoder.layer.{}"),
    "Roberta": (TEXT, TEXTS, [16, 16], "roberta.encoder.layer.{}"),
    "Electra": (SMALL, TEXTS, [16, 16], "electra.encoder.layer.{}"),
    "DistilBert": (DISTIL | FEW, TEXTS, [16, 16], "distilbert.transformer.layer.{}"),
    "Albert": (SMALL, TEXTS, [16, 16], "albert.encoder.albert_layer_groups.0:{}"),
    "DebertaV2": (TEXT, TEXTS, [16, 16], "deberta.encoder.layer.{}"),
    "GPT2": (GPT2 | FEW, TEXTS, [16, 16], "transformer.h.{}"),
    "Llama": (TEXT, TEXTS, [16, 16], "model.layers.{}"),
    "Qwen2": ({**TEXT, "num_key_value_heads": 2}, TEXTS, [16, 16], "model.layers.{}"),
    "ViT": (IMAGE, IMAGES, [16, 16], None),
    "Dinov2": (IMAGE, IMAGES, [16, 16], None),
    "Beit": (IMAGE, IMAGES, [16, 16], None),
    "ConvNext": ({**STAGES, "num_stages": 2}, IMAGES, [8, 16], None),
    "ResNet": ({**STAGES, "embedding_size": 8}, IMAGES, [8, 8, 16], None),
    "Wav2Vec2": (WAV, SOUND, [16, 16], None),
    "PatchTST": (PATCH, SERIES, [16, 16], None),
}


def maker(name):
    settings, X, *_ = ALL[name]
    end = "ForClassification" if name == "PatchTST" else "ForSequenceClassification"
    kind = getattr(transformers, name + ("ForImageClassification" if X is IMAGES else end))
    config = getattr(transformers, f"{name}Config")(**settings)
    return partial(kind, config)


def fitted(name, X):
    known = {"max_epochs": 1, "batch_size": 16, "random_state": 0, "n_networks": 1}
    known["head_input"] = "mean"  # whose number of features is the number of channels
    return CostSensitiveAuxNet(maker(name), **known).fit(X, y)


@pytest.mark.parametrize("name", ALL)
def test_architectures(name):
    _, X, sizes, path = ALL[name]
    model = fitted(name, X)
    (network,) = model.net_.module_.networks
    assert [head.in_features for head in network.heads.values()] == sizes
    if path is not None:
        first = int(name == "Albert")  # whose calls are counted from 1
        assert model.hidden_layers_ == [path.format(first + i) for i in range(2)]
        longer = {key: np.pad(values, ((0, 0), (0, 4))) for key, values in X.items()}
        for one, other in zip(model.staged_predict_cost(X), model.staged_predict_cost(longer)):
            np.testing.assert_allclose(one, other, atol=1e-5)
    if name != "Wav2Vec2":  # whose hooks are functions that transformers makes within functions
        loaded = pickle.loads(pickle.dumps(model))
        np.testing.assert_array_equal(loaded.predict_cost(X), model.predict_cost(X))


@pytest.mark.parametrize("name", ["Llama", "Bert"])
def test_padding_on_the_left(name):
    left = {key: values[:, ::-1].copy() for key, values in TEXTS.items()}
    model = fitted(name, left)
    alone = [model.predict_cost({k: v[[i]] for k, v in left.items()}) for i in range(10)]
    np.testing.assert_allclose(np.vstack(alone), model.predict_cost(left)[:10], atol=1e-5)


@pytest.mark.slow
def test_files():
    onnxruntime = pytest.importorskip("onnxruntime")
    onnx = pytest.importorskip("auxcst_sklearn.onnx")
    X = ALL["GPT2"][1]
    model = fitted("GPT2", X)
    session = onnxruntime.InferenceSession(onnx.to_onnx(model, X).SerializeToString())
    given = {k: v[:7, :5] for k, v in X.items()}
    expected = model.predict_cost(given)
    np.testing.assert_allclose(session.run(["cost"], given)[0], expected, rtol=1e-4, atol=1e-5)
