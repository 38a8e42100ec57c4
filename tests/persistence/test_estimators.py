"""Saved models: every kind comes back to the last bit, and no file can do harm."""

from __future__ import annotations

import copy
import hashlib
import importlib
import json
import pickle
import tempfile
from dataclasses import asdict, fields
from functools import cache
from io import BytesIO
from pathlib import Path

import joblib
import numpy as np
import pytest
import skops.io
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal, assert_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import rwf
from rwf import RandomFeatures, RFFRegressor, RWFRegressor
from rwf.errors import (
    ModelFileError,
    NewerModelFileError,
    RowsInFileWarning,
    UnsavableModelError,
)
from rwf.inference.spike_slab.fit import Schedule
from rwf.models.blended import NeighborBlend
from rwf.models.corrected import Calibrated
from rwf.models.dense import DenseModel
from rwf.models.spike_slab import SpikeSlabModel
from rwf.models.tree import TreeModel
from rwf.persistence import SKOPS_TYPES, file
from rwf.persistence.estimators import FittedAttributes
from rwf.persistence.file import MAGIC, PREFIX
from rwf.priors import SpikeSlab
from rwf.wavelets import Cliff, CompactHat, MexicanHat

QUICK = {"max_iter": 5, "n_restarts": 0, "random_state": 0}


def line(n=240, *, outputs=1):
    """Smooth and calm on the left, a jump, and restless on the right, with noise that grows."""
    rng = np.random.default_rng(7)
    X = rng.uniform(2.0, 9.0, (n, 1))
    x = X[:, 0]
    f = np.where(x < 5, np.sin(x), 4 + np.sin(9 * x))
    y = 30 + 3 * (f + np.where(x < 5, 0.02, 0.4) * rng.normal(size=n))
    return X, (y if outputs == 1 else np.column_stack([y, 5 - 2 * np.cos(x), 0.1 * x]))


def plane(n=150):
    """Four columns, of which one is skewed and one is constant."""
    rng = np.random.default_rng(8)
    X = np.column_stack(
        [rng.uniform(2, 9, n), rng.lognormal(3, 1, n), np.full(n, 4.0), rng.normal(3, 2, (n, 2))]
    )
    return X, 5 + 2 * np.sin(X[:, 0]) + np.log(X[:, 1]) + 0.1 * rng.normal(size=n)


def terrain(n=600):
    rng = np.random.default_rng(9)
    X = rng.uniform(1.0, 2.0, (n, 2))
    rough = np.prod(np.sin(30.0 * X), axis=1) * np.where(X[:, 0] > 1.5, 1.0, 0.1)
    return X, 30.0 + 10.0 * (X.sum(axis=1) + rough + rng.normal(0.0, 0.01, n))


def exact(n=120):
    """Without noise, so that a Gram matrix does not resolve what is left."""
    X = np.linspace(2, 9, n)[:, None]
    return X, 3 + np.sin(X[:, 0])


def spike_slab():
    short = Schedule(chains=2, sweeps=5, burn_in=3, keeping=3, attempts=1, draws=8)
    return RWFRegressor(prior=SpikeSlab(short), **QUICK).fit(*line(120))


MODELS = {
    "random_features": lambda: RWFRegressor(40, prior="random_features", **QUICK).fit(*line()),
    "wavelets": lambda: RWFRegressor(
        30,
        prior=RandomFeatures(wavelet=Cliff(3.0), shifts=rwf.Hull(), scales=(0.25, 4.0)),
        **QUICK,
    ).fit(*terrain(150)),
    "morlet": lambda: RWFRegressor(
        30,
        prior=RandomFeatures(
            wavelet="complex_morlet", blocks=("radial",), normalization="energy"
        ),
        **QUICK,
    ).fit(*line()),
    "haar": lambda: RWFRegressor(30, prior=RandomFeatures(wavelet="haar"), **QUICK).fit(*line()),
    "db4": lambda: RWFRegressor(
        30, prior=RandomFeatures(wavelet="db4", blocks=("radial",)), **QUICK
    ).fit(*line()),
    "paper": lambda: RWFRegressor.from_paper(40, **QUICK).fit(*line()),
    "nystrom": lambda: RWFRegressor(40, prior="nystrom", **QUICK).fit(*plane()),
    "all rows": lambda: RWFRegressor(prior="nystrom", **QUICK).fit(*plane(60)),
    "mixed": lambda: RWFRegressor(
        40, prior="nystrom", neighbors=None, **QUICK
    ).fit(*plane(3100)),
    "multiscale": lambda: RWFRegressor(60, prior="multiscale", noise="constant", **QUICK).fit(
        *line()
    ),
    "varying": lambda: RWFRegressor(
        60, prior="multiscale", noise="heteroscedastic", **QUICK
    ).fit(*line()),
    "student": lambda: RWFRegressor(60, prior="multiscale", noise="student", **QUICK).fit(
        *line()
    ),
    "adaptive": lambda: RWFRegressor(40, prior="adaptive", **QUICK).fit(*line()),
    "outputs": lambda: RWFRegressor(40, prior="adaptive", **QUICK).fit(*line(outputs=3)),
    "spike_slab": spike_slab,
    "tree": lambda: RWFRegressor(300, solver="multifrontal", **QUICK).fit(*terrain()),
    "varying tree": lambda: RWFRegressor(
        200, solver="multifrontal", noise="heteroscedastic", **QUICK
    ).fit(*line(600)),
    "student tree": lambda: RWFRegressor(
        200, solver="multifrontal", noise="student", **QUICK
    ).fit(*line(600)),
    "RFF": lambda: RFFRegressor(40, kernel="matern32", n_blocks=2, **QUICK).fit(*plane()),
    "root": lambda: RWFRegressor(60, prior="random_features", **QUICK).fit(*exact()),
    "neighbors": lambda: RWFRegressor(
        60, solver="multifrontal", neighbors=16, **QUICK
    ).fit(*terrain(1200)),
}  # fmt: skip
DATA = {"nystrom", "all rows", "mixed", "RFF"}


@cache
def fitted(name):
    return MODELS[name]()


def queries(model):
    """Among the rows, and far beyond them."""
    scaler = model.model_.units
    unit = np.random.default_rng(2).normal(size=(25, len(scaler.columns)))
    unit[-1] = 30.0
    return scaler.original_inputs(unit)


def saved(model, path, **options):
    options.setdefault("include_rows", model.model_.keeps_rows)
    model.save(path, **options)
    return rwf.load(path)


def everything(model):
    """All numbers that a model gives."""
    X = queries(model)
    answers = [
        model.predict(X),
        *model.predict(X, return_std=True),
        *model.predict(X, return_cov=True),
        *model.predict_function(X),
        *model.predict_interval(X, 0.9),
        model.predict_quantiles(X, (0.05, 0.5)),
        model.support(X),
        model.sample_y(X, 3, random_state=5),
        model.sample_y(X, 3, random_state=5, noise=False),
        model.noise_variance_,
        model.prior_variances_,
        model.length_scales_,
        model.n_features_out_,
        model.n_iter_,
    ]
    if not isinstance(model.model_.base, SpikeSlabModel):
        answers.append(model.log_marginal_likelihood())
    return answers


def assert_same(model, other):
    for a, b in zip(everything(model), everything(other), strict=True):
        assert_array_equal(a, b, strict=isinstance(a, np.ndarray))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.rwf"


# Round trips


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", MODELS)
def test_a_loaded_model_is_the_same_to_the_last_bit(name, path):
    model = fitted(name)
    loaded = saved(model, path)
    assert type(loaded) is type(model)
    assert set(vars(loaded)) == set(vars(model))
    assert repr(loaded.get_params()) == repr(model.get_params())
    assert_equal(asdict(loaded.fit_report_), asdict(model.fit_report_))
    assert_same(loaded, model)
    first = path.read_bytes()
    saved(loaded, path)
    assert path.read_bytes() == first


def test_the_models_above_are_of_every_kind():
    models = {name: fitted(name) for name in MODELS}
    kinds = {type(model.model_.base) for model in models.values()}
    assert kinds == {DenseModel, SpikeSlabModel, TreeModel}
    wrappers = {type(model.model_) for model in models.values()}
    assert wrappers == {DenseModel, TreeModel, SpikeSlabModel, Calibrated} & wrappers
    inner = {
        type(model.model_.model)
        for model in models.values()
        if model.model_ is not model.model_.base
    }
    assert NeighborBlend in inner
    assert models["root"].fit_report_.statistics == "root"
    assert models["varying"].model_.base.noise is not None
    assert models["varying tree"].model_.base.noise is not None
    assert len(models["student"].model_.base.noise.keys) == 240
    assert len(models["student tree"].model_.base.noise.keys) == 600
    assert models["nystrom"].model_.units.logarithm.chosen.any()
    assert not models["nystrom"].model_.units.X.varies.all()
    assert models["all rows"].model_.base.nystrom.n_features == 60
    assert len(models["tree"].model_.base.hyperparameters.tree.dissection.leaves) > 1


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", MODELS)
def test_further_rows_change_a_loaded_model_as_they_change_the_first(name, path):
    model = copy.copy(fitted(name))
    loaded = saved(model, path)
    X, y = queries(model)[:20], np.linspace(3, 4, 20)
    Y = y if model._single_output else np.column_stack([y, y + 1, 2 * y])
    model.partial_fit(X, Y)
    loaded.partial_fit(X, Y)
    assert_same(loaded, model)
    assert_same(saved(model, path), model)  # with variances that were not computed yet


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", ["multiscale", "root", "spike_slab", "tree", "neighbors"])
def test_loaded_parts_are_merged(name, path):
    blank = saved(fitted(name).empty_copy(), path)
    X = queries(blank)
    left, right = (
        blank.empty_copy().partial_fit(X[rows], X[rows].sum(axis=1) + 25)
        for rows in (slice(0, 12), slice(12, 24))
    )
    whole = copy.copy(left).merge(right)
    assert_same(saved(left, path).merge(saved(right, path)), whole)


def test_names_of_columns_come_back(path):
    pandas = pytest.importorskip("pandas")
    X, y = line(100)
    table = pandas.DataFrame(X, columns=["Größe in m"])
    model = RWFRegressor(20, prior="multiscale", **QUICK).fit(table, y)
    loaded = saved(model, path)
    assert_array_equal(loaded.feature_names_in_, model.feature_names_in_, strict=True)
    assert_array_equal(loaded.predict(table), model.predict(table))


@pytest.mark.parametrize("make", [np.random.default_rng, np.random.RandomState])
def test_a_generator_is_no_part_of_a_model(make, path):
    model = copy.copy(fitted("multiscale")).set_params(random_state=make(3))
    assert saved(model, path).random_state is None


def test_parameters_keep_their_types(path):
    prior = RandomFeatures(scales=(0.5, 2.0), blocks=("radial", "ridge"), shifts=rwf.Box(0.3))
    given = {"prior": prior, "neighbors": None, "metric": "full"}
    model = copy.copy(fitted("random_features")).set_params(**given, verbose=np.int64(0))
    loaded = saved(model, path)
    assert {name: getattr(loaded, name) for name in given} == given
    assert clone(loaded).prior == prior


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", ["multiscale", "nystrom", "spike_slab", "tree", "neighbors"])
def test_pickle_and_joblib_round_trip(name, tmp_path):
    model = fitted(name)
    joblib.dump(model, tmp_path / "model.joblib")
    assert_same(joblib.load(tmp_path / "model.joblib"), model)
    assert_same(pickle.loads(pickle.dumps(model)), model)
    # One that was loaded has nothing in it that pickle could not hold.
    loaded = saved(model, tmp_path / "model.rwf")
    assert_same(pickle.loads(pickle.dumps(loaded)), model)


def test_types_for_skops_exist():
    for name in SKOPS_TYPES:
        module, _, attribute = name.rpartition(".")
        assert isinstance(getattr(importlib.import_module(module), attribute), type)


@pytest.mark.parametrize("name", MODELS)
def test_types_for_skops_are_all_that_a_pickle_names(name, path):
    model = saved(fitted(name), path)
    model.predict(queries(model)[:3])

    class Names(pickle.Unpickler):
        def find_class(self, module, attribute):
            if module.split(".")[0] == "rwf":
                assert f"{module}.{attribute}" in SKOPS_TYPES
            return super().find_class(module, attribute)

    Names(BytesIO(pickle.dumps(model))).load()


def test_skops_loads_what_it_is_told_to_trust(path):
    model = saved(fitted("tree"), path)
    loaded = skops.io.loads(skops.io.dumps(model), trusted=list(SKOPS_TYPES))
    assert_array_equal(loaded.predict(queries(model)), model.predict(queries(model)))


# What is not in a file


@pytest.mark.parametrize("name", [name for name in MODELS if name != "neighbors"])
def test_no_target_is_in_a_file(name, path):
    model = fitted(name)
    if name in DATA:
        _, y = plane({"all rows": 60, "mixed": 3100}.get(name, 150))
    elif name in ("tree", "wavelets"):
        _, y = terrain(600 if name == "tree" else 150)
    elif name == "root":
        _, y = exact()
    else:
        n = {"spike_slab": 120, "varying tree": 600}.get(name, 240)
        _, y = line(n, outputs=3 if name == "outputs" else 1)
    table = y.reshape(len(y), -1)
    model.save(path)
    content = path.read_bytes()
    for targets in (table, model.model_.units.y(table)):
        assert not any(value.tobytes() in content for value in targets.ravel())


def test_rows_are_saved_only_if_they_may_be(path):
    model = fitted("neighbors")
    with pytest.raises(ValueError, match="pass include_rows=True"):
        model.save(path, include_rows=False)
    assert not path.exists()
    with pytest.warns(RowsInFileWarning, match="neighbors=None"):
        model.save(path)
    assert isinstance(rwf.load(path).model_.model, NeighborBlend)


class Sombrero(rwf.RadialWavelet):
    def profile(self, q, d):
        return (1 - (d + 2) * q / d) / (1 + q) ** (d + 2)

    def slope(self, q, d):
        tail = (1 - (d + 2) * q / d) / (1 + q) ** (d + 3)
        return -(d + 2) * (1 / d / (1 + q) ** (d + 2) + tail)


class Subclass(MexicanHat):
    pass


class MyRegressor(RWFRegressor):
    pass


def shifts_of_mine(X, m, rng):
    return np.repeat(X[:1], m, axis=0) + rng.normal(size=(m, X.shape[1]))


@pytest.mark.parametrize("wavelet", [Sombrero(), Subclass()])
def test_code_of_the_user_is_refused_with_advice(wavelet, path):
    model = RWFRegressor(10, prior=RandomFeatures(wavelet=wavelet), **QUICK).fit(*line(60))
    with pytest.raises(UnsavableModelError, match=r"use one of its wavelets.*or keep"):
        model.save(path)
    assert not path.exists()


def test_a_function_for_shifts_can_be_put_away(path):
    model = RWFRegressor(10, prior=RandomFeatures(shifts=shifts_of_mine), **QUICK).fit(*line(60))
    with pytest.raises(UnsavableModelError, match=r"set_params\(prior='auto'\)"):
        model.save(path)
    assert_same(saved(model.set_params(prior="auto"), path), model)


def test_other_things_that_cannot_be_saved(path):
    with pytest.raises(NotFittedError):
        RWFRegressor().save(path)
    with pytest.raises(UnsavableModelError, match="MyRegressor is a class of your own"):
        MyRegressor(10, **QUICK).fit(*line(60)).save(path)
    high = RWFRegressor(10, prior=RandomFeatures(wavelet=CompactHat(2000)), **QUICK).fit(*line(60))
    with pytest.raises(UnsavableModelError, match="order of 2000 is too high"):
        high.save(path)


def test_every_attribute_of_a_fit_is_saved():
    known = {field.name for field in fields(FittedAttributes)}
    for name in MODELS:
        model = fitted(name)
        assert set(vars(model)) <= known | set(model.get_params())


# Files that are not what they should be


@cache
def small_file():
    """Bytes of a file with features, statistics and noise that varies."""
    model = RWFRegressor(20, prior="multiscale", noise="heteroscedastic", **QUICK).fit(*line(120))
    return _bytes(model)


@cache
def tree_file():
    return _bytes(
        RWFRegressor(150, solver="multifrontal", noise="constant", **QUICK).fit(*line(300))
    )


@cache
def spike_slab_file():
    return _bytes(fitted("spike_slab"))


def _bytes(model, **options):
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model", **options)
        return (Path(folder) / "model").read_bytes()


def with_header(content, change):
    """A file with another header and a checksum that is right."""
    _, version, length = PREFIX.unpack(content[: PREFIX.size])
    start = PREFIX.size + length
    header = change(json.loads(content[PREFIX.size : start]))
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return signed(PREFIX.pack(MAGIC, version, len(text)) + text + content[start:-32])


def signed(content):
    return content + hashlib.sha256(content).digest()


def load_bytes(content, path):
    path.write_bytes(content)
    return rwf.load(path)


@given(data=st.data())
def test_no_flipped_bit_goes_unnoticed(data, tmp_path):
    content = bytearray(small_file())
    header = PREFIX.size + PREFIX.unpack(content[: PREFIX.size])[2]
    regions = [(0, PREFIX.size), (PREFIX.size, header), (header, len(content) - 32)]
    low, high = data.draw(st.sampled_from([*regions, (len(content) - 32, len(content))]))
    place = data.draw(st.integers(low, high - 1))
    content[place] ^= data.draw(st.integers(1, 255))
    with pytest.raises(ModelFileError):
        load_bytes(bytes(content), tmp_path / "model")


@given(st.integers(0, 10**6))
def test_no_truncated_file_is_loaded(tmp_path, length):
    content = small_file()
    with pytest.raises(ModelFileError):
        load_bytes(content[: length % len(content)], tmp_path / "model")


def test_nothing_may_follow(path):
    with pytest.raises(ModelFileError):
        load_bytes(small_file() + b"\0", path)


def test_other_files_are_refused(path):
    for content in (b"", b"RWF", pickle.dumps({"a": 1}), b"PK\x03\x04", b"\0" * 100):
        with pytest.raises(ModelFileError, match=r"no model file of rwf.*pickle"):
            load_bytes(content, path)
    with pytest.raises(FileNotFoundError):
        rwf.load(path.with_name("nowhere"))


class Bomb:
    def __reduce__(self):
        return (pytest.fail, ("code from a file was run",))


def test_a_pickle_is_not_run(path):
    with pytest.raises(ModelFileError, match="it can run anything"):
        load_bytes(pickle.dumps(Bomb()), path)


def test_files_of_other_versions_are_refused_with_advice(path):
    newer = PREFIX.pack(MAGIC, file.VERSION + 1, 30) + b"anything"
    with pytest.raises(NewerModelFileError, match=r"version 3.*install a newer rwf"):
        load_bytes(signed(newer + b"\0" * 99), path)
    older = PREFIX.pack(MAGIC, 1, 2) + b"{}"
    with pytest.raises(ModelFileError, match=r"version 1 .*the rwf that wrote it, or fit"):
        load_bytes(signed(older), path)
    with pytest.raises(ModelFileError, match="claims version 0"):
        load_bytes(signed(PREFIX.pack(MAGIC, 0, 2) + b"{}"), path)


def test_lengths_are_checked(path):
    with pytest.raises(ModelFileError, match=f"a header of {2**60} bytes"):
        load_bytes(signed(PREFIX.pack(MAGIC, file.VERSION, 2**60) + b"{}"), path)

    def claims(**entry):
        def change(header):
            header["arrays"][0] |= entry
            return header

        with pytest.raises(ModelFileError, match="array"):
            load_bytes(with_header(small_file(), change), path)

    for shape in ([2**60], [0, 2**60], [-8], [1.0], [True], "x", [2**30, 2**30], [1] * 40, None):
        claims(shape=shape)
    claims(shape=[2**31, 2**31], layout="symmetric")
    claims(shape=[3, 4], layout="lower")
    for dtype in ("object", "complex128", "float16", "O", None, 3, "|V8"):
        claims(dtype=dtype)
    claims(order="K")


def test_headers_that_are_no_headers(path):
    deep = b'{"objects": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    for text in (deep, b"[]", b"nonsense", b"\xff\xfe", b"{}", b'{"arrays": NaN}', b"1" * 9000):
        with pytest.raises(ModelFileError):
            load_bytes(with_header(small_file(), lambda header, text=text: text), path)
    for key in ("estimator", "parameters", "fitted", "objects", "arrays"):
        with pytest.raises(ModelFileError):
            load_bytes(with_header(small_file(), lambda h, key=key: h | {key: None}), path)


def changed(header, kind, **entries):
    for written in header["objects"]:
        if written["type"] == kind:
            written.update(entries)
    return header


@pytest.mark.parametrize(
    "kind, entries, message",
    [
        ("Affine", {"type": "os.system"}, "'os.system', which this rwf does not know"),
        ("Affine", {"type": ["x"]}, "which this rwf does not know"),
        ("Affine", {"more": 1}, "Affine should have the fields"),
        ("Affine", {"center": {"array": 10**6}}, "refers to none of"),
        ("Affine", {"center": {"array": -1}}, "refers to none of"),
        ("Affine", {"center": {"object": 0}}, "refers to none of"),
        ("Affine", {"center": [1.0]}, "refers to none of"),
        ("Standardizer", {"X": {"object": 10**6}}, "refers to none of"),
        ("Stack", {"maps": []}, "there are no features"),
        ("LinearFeatures", {"n_features": 2**60}, "differ in number"),
        ("LinearFeatures", {"n_features": -1}, "a negative number of columns"),
        ("ConstantFeatures", {"n_features": 2**40}, "a constant has one column"),
        ("CompactHat", {"order": 10**15}, "is too high"),
        ("CompactHat", {"order": 1}, "use an integer of at least 3"),
        ("CompactHat", {"order": 4.0}, "is no int"),
        ("DenseModel", {"learn_variances": 1}, "is no bool"),
        ("DenseModel", {"hyperparameters": {"object": 0}}, "is no Hyperparameters"),
        ("Posterior", {"rss": "1.0"}, "is no float"),
        ("Posterior", {"noise_variance": -1e-3}, "no Cholesky factor"),
    ],
)
def test_objects_that_make_no_sense(kind, entries, message, path):
    with pytest.raises(ModelFileError, match=message):
        load_bytes(with_header(small_file(), lambda h: changed(h, kind, **entries)), path)


def test_parameters_and_attributes_that_make_no_sense(path):
    seeds = {"bits": "PCG64", "state": [1, 1], "rest": [0, 0], "entropy": 1, "spawn_key": []}
    for parameter in (
        {"generator": {**seeds, "pool": [2**60, 0]}},
        {"generator": {**seeds, "pool": [4, 0], "bits": "system"}},
        {"generator": {**seeds, "pool": [4, 0], "state": [-1, 0]}},
        {"random_state": {"key": {"array": 0}, "position": 10**6, "has_gauss": 0, "gauss": 0.0}},
        {"object": 10**6},
        {"x": 1},
        [],
    ):
        change = {"parameters": {"random_state": parameter}}
        with pytest.raises(ModelFileError):
            load_bytes(with_header(small_file(), lambda h, c=change: h | c), path)
    for key in ("predict", "__class__", "__dict__"):
        with pytest.raises(ModelFileError, match=r"should have the fields.*Install the version"):
            load_bytes(with_header(small_file(), lambda h, k=key: _with_attribute(h, k)), path)
    with pytest.raises(ModelFileError, match="this rwf knows"):
        load_bytes(with_header(small_file(), lambda h: h | {"parameters": {"colour": 1}}), path)
    with pytest.raises(ModelFileError, match="is no estimator"):
        load_bytes(with_header(small_file(), lambda h: h | {"estimator": "load"}), path)


def _with_attribute(header, key):
    header["fitted"][key] = 1
    return header


def places_in(json, found=()):
    """Paths to all entries of a tree of JSON."""
    yield found
    pairs = json.items() if isinstance(json, dict) else enumerate(json)
    for key, value in pairs:
        if isinstance(value, dict | list):
            yield from places_in(value, (*found, key))
        else:
            yield (*found, key)


ODD = [None, True, -1, 0, 1, 7, 2**31, 2**60, 10**400, 0.5, "nan", "", "x", [], {}, [[]]]
ODD += [{"array": 0}, {"object": 0}, {"array": 5}, {"object": 5}]


@settings(max_examples=300)
@given(data=st.data())
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("make", [small_file, tree_file, spike_slab_file])
def test_hostile_headers_are_refused_or_give_a_model(make, data, tmp_path):
    """A hostile file with a right checksum is refused, or gives a model that predicts."""

    def change(header):
        place = data.draw(st.sampled_from([p for p in places_in(header) if p]))
        within = header
        for key in place[:-1]:
            within = within[key]
        within[place[-1]] = data.draw(st.sampled_from(ODD))
        return header

    predict_from(with_header(make(), change), tmp_path / "model")


@settings(max_examples=100)
@given(data=st.data())
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("make", [small_file, tree_file, spike_slab_file])
def test_hostile_indices_are_refused_or_give_a_model(make, data, tmp_path):
    """The same for the entries of integer arrays, which compiled loops take for indices."""
    content = make()
    length = PREFIX.unpack(content[: PREFIX.size])[2]
    header = json.loads(content[PREFIX.size : PREFIX.size + length])
    specs = [file.ArraySpec.from_json(entry, len(content)) for entry in header["arrays"]]
    starts = PREFIX.size + length + np.cumsum([0, *(spec.n_bytes for spec in specs)])
    integers = [i for i, spec in enumerate(specs) if spec.dtype == "int64" and spec.n_bytes]
    which = data.draw(st.sampled_from(integers))
    place = data.draw(st.integers(0, specs[which].n_bytes // 8 - 1))
    value = data.draw(st.sampled_from([-(2**62), -2, -1, 0, 1, 2, 5, 100, 10**6, 2**62]))
    first = int(starts[which]) + 8 * place
    new = content[:first] + value.to_bytes(8, "little", signed=True) + content[first + 8 : -32]
    predict_from(signed(new), tmp_path / "model")


def predict_from(content, path):
    try:
        model = load_bytes(content, path)
    except ModelFileError:
        return
    X = np.linspace(1, 10, 5)[:, None]
    try:
        model.predict(X)
        model.predict(X, return_std=True)
    except Exception:  # noqa: BLE001 - numbers may be senseless; memory of others is not touched
        return


# The file


def test_writing_is_all_or_nothing(path, monkeypatch):
    fitted("multiscale").save(path)
    before = path.read_bytes()

    def full(descriptor):
        raise OSError(28, "No space left on device")

    def denied(self, target):
        raise PermissionError(13, "Permission denied")

    for owner, name, failure in (
        (file.os, "fsync", full),
        (type(path), "replace", denied),
        (file.ArraySpec, "pack", denied),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, failure)
            with pytest.raises(OSError, match=r"No space|denied"):
                fitted("paper").save(path)
        assert path.read_bytes() == before
        assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_a_file_behind_a_link_is_replaced_and_the_link_stays(path):
    target = path.with_name("target.rwf")
    path.symlink_to(target)
    fitted("paper").save(path)
    assert path.is_symlink()
    assert rwf.load(target).n_features_out_ == fitted("paper").n_features_out_
    assert rwf.load(str(path)).n_features_out_ == fitted("paper").n_features_out_


ARRAYS = {
    "full": np.arange(12.0).reshape(3, 4),
    "a view": np.arange(40.0)[::3],
    "columns": np.arange(40.0).reshape(5, 8)[:, ::2],
    "Fortran": np.asfortranarray(np.arange(12.0).reshape(3, 4)),
    "lower": np.tril(np.arange(1.0, 17).reshape(4, 4)),
    "lower in Fortran": np.asfortranarray(np.tril(np.arange(1.0, 17).reshape(4, 4))),
    "upper": np.triu(np.arange(1.0, 17).reshape(4, 4)),
    "symmetric": np.add.outer(np.arange(4.0), np.arange(4.0)),
    "minus zero": np.array([[1.0, -0.0], [2.0, 3.0]]),
    "not finite": np.array([[np.nan, np.inf], [np.inf, -np.inf]]),
    "empty": np.empty((0, 3)),
    "empty square": np.empty((0, 0)),
    "one": np.array([[5.0]]),
    "denormal": np.array([5e-324, 1.7976931348623157e308]),
    "integers": np.array([-(2**63), 2**63 - 1]),
    "truth": np.array([True, False]),
}


def test_arrays_come_back_as_they_lay_in_memory(path):
    file.write(path, {}, list(ARRAYS.values()))
    _, arrays, _ = file.read(path)
    for (name, array), found in zip(ARRAYS.items(), arrays, strict=True):
        assert found.dtype == array.dtype, name
        assert found.shape == array.shape, name
        assert found.tobytes("A") == array.tobytes("A"), name
        if array.flags.contiguous or array.flags.f_contiguous:
            assert found.flags.f_contiguous == array.flags.f_contiguous, name
        assert found.flags.writeable, name


def test_triangles_are_stored_once(path):
    n = 200
    G = np.cov(np.random.default_rng(0).normal(size=(n, 3 * n)))
    G = np.tril(G) + np.tril(G, -1).T
    L = np.asfortranarray(np.linalg.cholesky(G + np.eye(n)))
    file.write(path, {}, [G, L])
    assert path.stat().st_size < 8 * n * (n + 1) + 1000


def test_truth_values_are_zero_or_one(path):
    file.write(path, {"a": 1}, [np.array([True, False])])
    content = path.read_bytes()[:-32]
    path.write_bytes(signed(content[:-1] + b"\x02"))
    with pytest.raises(ModelFileError, match="truth values"):
        file.read(path)
