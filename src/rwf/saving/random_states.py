"""Random states as JSON: a seeded generator goes on after loading as it would have before."""

from __future__ import annotations

import numpy as np

from rwf.errors import UnsavableModelError
from rwf.saving.codec import FLOAT, Decoder, Encoder, Mismatch, require
from rwf.saving.container import Json

BIT_GENERATORS = ("PCG64", "PCG64DXSM")
"""Those whose state is a few numbers, of which all are valid."""

MT_WORDS = 624
"""Words of the state of a Mersenne twister."""

MOST_WORDS = 64
"""Of a seed sequence."""


def encode_generator(rng: np.random.Generator) -> Json:
    """The state of a generator, and of the seeds that its children will have."""
    bits = rng.bit_generator
    seeds = bits.seed_seq
    name = type(bits).__name__
    if name not in BIT_GENERATORS or not isinstance(seeds, np.random.SeedSequence):
        raise UnsavableModelError(
            f"random_state is a generator of {name}, whose state a model file cannot hold: call "
            "set_params(random_state=None) before saving. Predictions do not depend on it."
        )
    state = bits.state
    entropy = seeds.entropy
    words: Json = entropy if entropy is None or isinstance(entropy, int) else _words(entropy)
    return {
        "bits": name,
        "state": [state["state"]["state"], state["state"]["inc"]],
        "rest": [state["has_uint32"], state["uinteger"]],
        "entropy": words,
        "spawn_key": _words(seeds.spawn_key),
        "pool": [seeds.pool_size, seeds.n_children_spawned],
    }


def _words(values: object) -> list[Json]:
    return [int(value) for value in np.atleast_1d(np.asarray(values, dtype=object))]


def decode_generator(json: Json) -> np.random.Generator:
    if not isinstance(json, dict):
        raise Mismatch("a generator is described by something else")
    name, entropy = json.get("bits"), json.get("entropy")
    require(name in BIT_GENERATORS, f"{str(name)[:40]!r} is no generator")
    state, inc = _numbers(json.get("state"), 2, 2**128)
    has_uint32, uinteger = _numbers(json.get("rest"), 2, 2**32)
    pool_size, n_children = _numbers(json.get("pool"), 2, 2**32)
    require(pool_size <= MOST_WORDS, f"a pool of {pool_size} words is too large")
    seeds = np.random.SeedSequence(
        entropy if entropy is None else _seeds(entropy),
        spawn_key=_numbers(json.get("spawn_key"), None, 2**32),
        pool_size=pool_size,
        n_children_spawned=n_children,
    )
    bits = np.random.PCG64(seeds) if name == "PCG64" else np.random.PCG64DXSM(seeds)
    bits.state = {
        "bit_generator": str(name),
        "state": {"state": state, "inc": inc},
        "has_uint32": has_uint32,
        "uinteger": uinteger,
    }
    return np.random.Generator(bits)


def _seeds(json: Json) -> int | list[int]:
    if isinstance(json, list):
        return _numbers(json, None, 2**128)
    return _numbers([json], 1, 2 ** (32 * MOST_WORDS))[0]


def _numbers(json: Json, count: int | None, below: int) -> list[int]:
    """Integers from zero up to a bound, so many or only a few."""
    if not isinstance(json, list) or len(json) > MOST_WORDS or count not in (None, len(json)):
        raise Mismatch("a random state has not the numbers that it should have")
    numbers = []
    for number in json:
        if type(number) is not int or not 0 <= number < below:
            raise Mismatch("a random state has a number that is out of bounds")
        numbers.append(number)
    return numbers


def encode_random_state(state: np.random.RandomState, encoder: Encoder) -> Json:
    """The state of numpy's old generator."""
    found = state.get_state(legacy=False)
    assert isinstance(found, dict)
    if found["bit_generator"] != "MT19937":
        raise UnsavableModelError(
            f"random_state is a RandomState of {found['bit_generator']}: call "
            "set_params(random_state=None) before saving. Predictions do not depend on it."
        )
    return {
        "key": {"array": encoder.array(found["state"]["key"])},
        "position": int(found["state"]["pos"]),
        "has_gauss": int(found["has_gauss"]),
        "gauss": FLOAT.encode(found["gauss"], encoder, {}),
    }


def decode_random_state(json: Json, decoder: Decoder) -> np.random.RandomState:
    if not isinstance(json, dict):
        raise Mismatch("a random state is described by something else")
    key = decoder.array(json.get("key"))
    require(key.dtype == np.uint32 and key.shape == (MT_WORDS,), "its key has another shape")
    # numpy reads where it is told to: beyond the key lies memory of others.
    (position,) = _numbers([json.get("position")], 1, MT_WORDS + 1)
    (has_gauss,) = _numbers([json.get("has_gauss")], 1, 2)
    state = np.random.RandomState()
    state.set_state(
        {
            "bit_generator": "MT19937",
            "state": {"key": key, "pos": position},
            "has_gauss": has_gauss,
            "gauss": FLOAT.decode(json.get("gauss"), decoder, {}),
        }
    )
    return state
