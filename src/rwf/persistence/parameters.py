"""The parameters of an estimator as JSON: plain values, and a few objects of rwf and numpy."""

from __future__ import annotations

import numpy as np

from rwf.errors import UnsavableModelError
from rwf.persistence.codec import FLOAT, Decoder, Encoder, Mismatch
from rwf.persistence.file import Json


def encode_parameter(name: str, value: object, encoder: Encoder) -> Json:
    """A value; what JSON has no word for becomes a dictionary with one key."""
    plain = value.item() if isinstance(value, np.generic) else value
    if plain is None or isinstance(plain, bool | int | str):
        return plain
    if isinstance(plain, float):
        return {"float": FLOAT.encode(plain, encoder, {})}
    if isinstance(plain, list | tuple):
        items: list[Json] = [encode_parameter(name, item, encoder) for item in plain]
        return {"list" if isinstance(plain, list) else "tuple": items}
    if isinstance(plain, np.random.Generator | np.random.RandomState):
        return None  # where a generator stands is no part of the model
    if callable(plain) and not encoder.knows(plain):
        raise UnsavableModelError(
            f"{name}={plain!r} is a function of your own, and a model file has no code in it. The "
            f"atoms that it placed are in the model: call set_params({name}='data') before saving, "
            "which changes no prediction, or keep the model by pickle or joblib."
        )
    return encoder.reference(plain)


def decode_parameter(json: Json, decoder: Decoder) -> object:
    if json is None or isinstance(json, bool | int | str):
        return json
    if not isinstance(json, dict) or len(json) != 1:
        raise Mismatch(f"{str(json)[:40]!r} is no parameter")
    ((key, value),) = json.items()
    if key == "float":
        return FLOAT.decode(value, decoder, {})
    if key in ("list", "tuple") and isinstance(value, list):
        items = [decode_parameter(item, decoder) for item in value]
        return items if key == "list" else tuple(items)
    return decoder.made(json)
