"""Descriptors of fitted attributes."""

from __future__ import annotations

from typing import Any


class Solved:
    """A fitted attribute, looked up in the solution of the estimator, which is computed when first needed."""

    def __init__(self, doc: str) -> None:
        self.__doc__ = doc

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name.removesuffix("_")

    def __get__(self, model: Any, owner: type) -> Any:
        return self if model is None else getattr(model._solution(), self.name)

    def __set__(self, model: Any, value: Any) -> None:
        # An assigned value would hide the results of later fits.
        raise AttributeError(f"{self.name}_ is a result of fitting and cannot be set.")


class NotKept:
    """An attribute of PLSRegression that is not stored; the error raised names the method to call instead."""

    def __init__(self, instead: str) -> None:
        self.instead = instead

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, model: Any, owner: type) -> Any:
        if model is None:
            return self
        raise AttributeError(
            f"{self.name} is not stored, because it grows with the number of rows: call {self.instead}."
        )
