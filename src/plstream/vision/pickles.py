"""Pickles of arrays, read without executing anything that they name.

Batches of CIFAR and of the downsampled ImageNet are pickles, and a pickle is a program. Here it can call only the few
functions of this module, which replace those that old and new releases of NumPy use for arrays.
"""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, ClassVar

import numpy as np

from .._core.errors import DataError
from .._core.types import Array

# Opcodes of Python's own unpickler, by byte.
_OPERATIONS: dict[int, Any] = pickle._Unpickler.dispatch


def read_pickle(path: Path) -> dict[str, Any]:
    """Return the dictionary pickled in a file, if it contains only arrays of numbers, lists, numbers and strings.

    The file may come from Python 2 or 3, any protocol and any release of NumPy. DataError is raised if it is damaged,
    or before anything else that it requests is provided.
    """
    try:
        with path.open("rb") as file:
            batch = _Unpickler(file).load()
        if isinstance(batch, dict):
            return {_text(key): value.array() if isinstance(value, _Array) else value for key, value in batch.items()}
    except DataError as error:
        raise DataError(f"{path}: {error}") from None
    except MemoryError:
        raise DataError(f"{path} is damaged, or requires more memory than is available.") from None
    except OSError:
        raise
    except Exception as error:  # noqa: BLE001  a damaged pickle raises anything
        # That of an empty file has no text.
        reason = f": {error}" if str(error) else ""
        raise DataError(f"{path} is not a pickle of arrays, or is damaged or truncated{reason}.") from None
    raise DataError(f"{path} holds a {type(batch).__name__}, not a dictionary with data and labels.")


def _with_checked_keys(opcode: bytes, keys: slice) -> Callable[[Any], None]:
    """Return an operation that first checks the keys of a dictionary, at their places on the stack.

    They must be strings or numbers: nested tuples take little space, but are slow to hash.
    """

    def load(unpickler: Any) -> None:
        for key in unpickler.stack[keys]:
            if not isinstance(key, str | bytes | int | float):
                raise DataError(f"it has a key of type {type(key).__name__}, which is refused.")
        _OPERATIONS[opcode[0]](unpickler)

    return load


class _Unpickler(pickle._Unpickler):
    """The pure Python unpickler: unlike in C, its memo is a dictionary, so a large index takes no memory."""

    def __init__(self, file: IO[bytes]) -> None:
        # Python 2 strings are read as bytes, as arrays require; names are decoded later.
        super().__init__(file, encoding="bytes")

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _STAND_INS:
            raise DataError(f"it requests {module}.{name}, which is not part of an array and is refused.")
        stand_in = _STAND_INS[module, name]

        # A new function each time: a pickle can set attributes of a function it receives.
        def call(*arguments: Any) -> Any:
            return stand_in(*arguments)

        return call

    def persistent_load(self, pid: Any) -> Any:
        raise DataError("it refers to objects outside of the file, which is refused.")

    def refuse_set(self) -> None:
        raise DataError("it has a set, which is not part of an array and is refused.")

    dispatch: ClassVar[dict[int, Any]] = {
        **_OPERATIONS,
        pickle.DICT[0]: _with_checked_keys(pickle.DICT, slice(None, None, 2)),
        pickle.SETITEM[0]: _with_checked_keys(pickle.SETITEM, slice(-2, -1)),
        pickle.SETITEMS[0]: _with_checked_keys(pickle.SETITEMS, slice(None, None, 2)),
        pickle.EMPTY_SET[0]: refuse_set,
        pickle.FROZENSET[0]: refuse_set,
    }


class _Type:
    """Replacement for a dtype: numbers only."""

    def __init__(self, code: Any, *_: Any) -> None:
        dtype = np.dtype(_text(code))
        if dtype.kind not in "biuf":
            raise DataError(f"it has an array of type {dtype}, not of numbers.")
        self.dtype = dtype

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.dtype = self.dtype.newbyteorder(_text(state[1]))  # type: ignore[arg-type]


class _Array:
    """Replacement for an array: its state, converted to an array only at the end."""

    def __init__(self, *_: Any) -> None:
        self.__setstate__((1, (0,), _Type("u1"), False, b""))

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _, shape, kind, fortran_order, data = state
        if not isinstance(kind, _Type) or not isinstance(data, bytes | bytearray | memoryview):
            raise DataError("it has an array of values other than numbers.")
        self.shape, self.dtype, self.data = shape, kind.dtype, data
        self.order: Any = "F" if fortran_order else "C"

    def array(self) -> Array:
        if math.prod(self.shape) * self.dtype.itemsize != len(self.data):
            raise DataError(f"an array of shape {self.shape} and type {self.dtype} has {len(self.data):,} bytes.")
        return np.frombuffer(self.data, self.dtype).reshape(self.shape, order=self.order)


def _from_buffer(data: Any, kind: Any, shape: Any, order: str) -> _Array:
    """Replace the function by which protocol 5 creates arrays."""
    array = _Array()
    array.__setstate__((1, shape, kind, order == "F", data))
    return array


def _scalar(kind: _Type, data: bytes) -> Any:
    """Replace the function that creates a NumPy scalar."""
    return np.frombuffer(data, kind.dtype)[0].item()


def _encode(text: str, encoding: Any) -> bytes:
    """Replace codecs.encode, by which protocols before 3 write bytes."""
    if encoding not in {"latin1", b"latin1"}:
        raise DataError("it has bytes in an encoding that no pickle uses.")
    return text.encode("latin1")


def _text(value: Any) -> str:
    return value.decode("latin1") if isinstance(value, bytes) else str(value)


_STAND_INS: dict[tuple[str, str], Callable[..., Any]] = {
    ("_codecs", "encode"): _encode,
    ("numpy", "dtype"): _Type,
    # Only ever passed to _reconstruct.
    ("numpy", "ndarray"): _Array,
}
# NumPy 2 calls its core _core.
for _core in ("numpy.core", "numpy._core"):
    _STAND_INS[f"{_core}.multiarray", "_reconstruct"] = _Array
    _STAND_INS[f"{_core}.multiarray", "scalar"] = _scalar
    _STAND_INS[f"{_core}.numeric", "_frombuffer"] = _from_buffer
