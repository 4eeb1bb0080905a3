"""Records: objects of known classes with known fields, which a model is a tree of.

Reading has three steps. ``check`` looks at every field, type and shape, and returns the tree of what it found. Then the
arrays are read, and ``check_rules`` looks at what must agree between fields. Only then does ``build`` make objects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import numpy as np
from sklearn import config_context
from sklearn.utils._param_validation import InvalidParameterError, validate_parameter_constraints

from .kinds import (
    LARGEST_COMPONENTS,
    Count,
    Kind,
    Maybe,
    MismatchError,
    Plain,
    Sizes,
    Stored,
    Tensors,
    Text,
    require_keys,
)


@dataclass
class Parsed:
    """A record that has been checked: its fields, and for an estimator its parameters."""

    record: Record
    fields: dict[str, Any] | None
    parameters: dict[str, Any] | None
    output: str | None
    where: str
    requests: dict[str, dict[str, Any]] = field(default_factory=dict)


@dataclass
class Parameter:
    """The very object that is a parameter of the estimator."""

    name: str


class FirstParameters(Kind):
    """The parameters an estimator began with, valid as those of its class are, some of them sizes."""

    def __init__(self, constraints: dict[str, list[Any]], **sizes: str) -> None:
        self.constraints = constraints
        self.sizes = sizes

    def write(self, value: Any, tensors: Tensors, where: str) -> Any:
        """Return what stands for each; an object that is a parameter still was replaced before."""
        return {
            name: ParameterOr(name, Plain()).write(entry, tensors, f"{where}.{name}") for name, entry in value.items()
        }

    def check(self, node: Any, tensors: Tensors, sizes: Sizes, where: str) -> Any:
        """Return the parameters."""
        require_keys(node, self.constraints.keys(), where)
        values = {
            name: ParameterOr(name, Plain()).check(node[name], tensors, sizes, f"{where}.{name}") for name in node
        }
        plain: dict[str, Any] = {
            name: None if isinstance(value, Parameter) else value for name, value in values.items()
        }
        try:
            validate_parameter_constraints(self.constraints, plain, caller_name=where)
        except (InvalidParameterError, TypeError, ValueError):
            raise MismatchError(f"{where} has a parameter that is not valid") from None
        Maybe(Count(1, LARGEST_COMPONENTS)).check(node["n_components"], tensors, sizes, f"{where}.n_components")
        for name, symbol in self.sizes.items():
            sizes.require(symbol, int(plain[name]), f"{where}.{name}")
        return values


class ParameterOr(Kind):
    """The very object that is a parameter of the estimator, or a value of some kind."""

    def __init__(self, name: str, kind: Kind) -> None:
        self.name = name
        self.kind = kind

    def write(self, value: Any, tensors: Tensors, where: str) -> Any:
        """Return a reference to the parameter, or what stands for the value."""
        return {"parameter": self.name} if isinstance(value, Parameter) else self.kind.write(value, tensors, where)

    def check(self, node: Any, tensors: Tensors, sizes: Sizes, where: str) -> Any:
        """Return the reference, or the value."""
        return (
            Parameter(self.name) if node == {"parameter": self.name} else self.kind.check(node, tensors, sizes, where)
        )


class OneOf(Kind):
    """A record of one of some classes. Symbols of its shapes may have other names outside."""

    def __init__(self, *classes: str, **names: str) -> None:
        self.classes = classes
        self.names = names

    def write(self, value: Any, tensors: Tensors, where: str) -> Any:
        """Return the class and what stands for each field."""
        name = type(value).__name__
        if name not in self.classes or Record.known[name].cls is not type(value):
            raise MismatchError(f"{where} is of the class {type(value).__qualname__}")
        return Record.known[name].write(value, tensors, where)

    def check(self, node: Any, tensors: Tensors, sizes: Sizes, where: str) -> Parsed:
        """Return the record."""
        name = node.get("class") if isinstance(node, dict) else None
        if name not in self.classes:
            raise MismatchError(f"{where} is not of the class {' or '.join(self.classes)}")
        return Record.known[name].check(node, tensors, sizes.renamed(self.names), where)


Rule = Callable[[dict[str, Any]], bool]


class Record:
    """A class whose objects may be in a file, and their fields.

    Parameters
    ----------
    cls : type
        The class. Its name is what stands for it in files.
    fields : dict of str to Kind
        All attributes of its objects, but for an estimator's parameters.
    optional : set of str
        Fields that need not be there.
    rules : dict of str to function
        What must be so of the fields, arrays among them, with a function that tells.
    take, build : function
        How to get the fields of an object, and to make an object of fields; by default these are its attributes.
    parameters : dict of str to Kind
        For an estimator, parameters that are more than plain values. A model may have no fields, before it is fitted.
    finish : function
        What to do to an estimator when all is built.
    """

    known: dict[str, Record] = {}  # noqa: RUF012

    def __init__(
        self,
        cls: Any,
        fields: dict[str, Kind],
        *,
        optional: frozenset[str] = frozenset(),
        rules: dict[str, Rule] | None = None,
        take: Callable[[Any], dict[str, Any]] | None = None,
        build: Callable[[Any, dict[str, Any]], Any] | None = None,
        parameters: dict[str, Kind] | None = None,
        finish: Callable[[Any], None] | None = None,
    ) -> None:
        self.cls = cls
        self.fields = fields
        self.optional = optional
        self.rules = rules or {}
        self.take = take or (lambda value: dict(vars(value)))
        self.make = build or _with_attributes
        self.parameters = parameters
        self.finish = finish
        self.known[cls.__name__] = self

    def write(self, value: Any, tensors: Tensors, where: str) -> Any:
        """Return what stands for an object."""
        node: dict[str, Any] = {"class": self.cls.__name__}
        fields = self.take(value)
        if self.parameters is not None:
            parameters = {name: fields.pop(name) for name in self._parameter_names()}
            node["parameters"] = {
                name: self._parameter_kind(name).write(parameter, tensors, f"{where}.{name}")
                for name, parameter in parameters.items()
            }
            node["output"] = fields.pop("_sklearn_output_config", {}).get("transform")
            if "_metadata_request" in fields:
                node["requests"] = fields.pop("_metadata_request")._serialize()
            _mark_parameters(fields, parameters)
            if not fields:
                node["fields"] = None
                return node
        self._require_fields(fields, where)
        node["fields"] = {
            name: kind.write(fields[name], tensors, f"{where}.{name}")
            for name, kind in self.fields.items()
            if name in fields
        }
        return node

    def check(self, node: Any, tensors: Tensors, sizes: Sizes, where: str) -> Parsed:
        """Return what stands for an object."""
        if self.parameters is None:
            require_keys(node, {"class", "fields"}, where)
            return Parsed(self, self._check_fields(node["fields"], tensors, sizes, where), None, None, where)
        requests = self._check_requests(node, where)
        require_keys({*node} - {"requests"}, {"class", "parameters", "output", "fields"}, where)
        require_keys(node["parameters"], self._parameter_names(), where)
        parameters = {
            name: self._parameter_kind(name).check(node["parameters"][name], tensors, Sizes(), f"{where}.{name}")
            for name in self._parameter_names()
        }
        output = Maybe(Text("default", "pandas", "polars")).check(node["output"], tensors, sizes, f"{where}.output")
        # Sizes are those of one model, and not of one inside it.
        own = Sizes()
        fields = None if node["fields"] is None else self._check_fields(node["fields"], tensors, own, where)
        own.settle()
        for reference in _references(fields or {}):
            if not isinstance(parameters.get(reference.name), Parsed | np.random.RandomState):
                raise MismatchError(f"{where} refers to a parameter that is not an object")
        return Parsed(self, fields, parameters, output, where, requests)

    def _check_requests(self, node: Any, where: str) -> dict[str, dict[str, Any]]:
        """Return what metadata the methods of an estimator ask for, if a file says so."""
        requests = node.get("requests") if isinstance(node, dict) else None
        if requests is None:
            return {}
        try:
            _set_requests(self.cls(), requests)
        except (AttributeError, TypeError, ValueError):
            raise MismatchError(f"{where} asks for metadata that is not known") from None
        return dict(requests)

    def _check_fields(self, node: Any, tensors: Tensors, sizes: Sizes, where: str) -> dict[str, Any]:
        self._require_fields(node, where)
        return {name: self.fields[name].check(part, tensors, sizes, f"{where}.{name}") for name, part in node.items()}

    def _require_fields(self, fields: Any, where: str) -> None:
        if not isinstance(fields, dict):
            raise MismatchError(f"{where} has no fields")
        require_keys({*fields} | self.optional, self.fields.keys(), where)

    def _parameter_names(self) -> list[str]:
        names: list[str] = self.cls._get_param_names()
        return names

    def _parameter_kind(self, name: str) -> Kind:
        assert self.parameters is not None
        return self.parameters.get(name, Plain())


def _with_attributes(cls: Any, fields: dict[str, Any]) -> Any:
    made = cls.__new__(cls)
    vars(made).update(fields)
    return made


def from_state(cls: Any, fields: dict[str, Any]) -> Any:
    """Return an object of a class that knows how to make one of its state."""
    made = cls.__new__(cls)
    made.__setstate__(fields)
    return made


def _mark_parameters(fields: dict[str, Any], parameters: dict[str, Any]) -> None:
    """Replace what is the very object that is a parameter, and can change: a copy of it would not change along."""
    for name, parameter in parameters.items():
        if parameter is None or isinstance(parameter, Real | str | tuple):
            continue
        if fields.get(f"{name}_") is parameter:
            fields[f"{name}_"] = Parameter(name)
        begun_with = fields.get("_begun_with", {})
        if begun_with.get(name) is parameter:
            fields["_begun_with"] = {**begun_with, name: Parameter(name)}


def _references(fields: dict[str, Any]) -> Iterator[Parameter]:
    for part in (*fields.values(), *fields.get("_begun_with", {}).values()):
        if isinstance(part, Parameter):
            yield part


def _set_requests(model: Any, requests: dict[str, dict[str, Any]]) -> None:
    """Let methods of an estimator ask for metadata."""
    with config_context(enable_metadata_routing=True):
        for method, asked in requests.items():
            if asked:
                getattr(model, f"set_{method}_request")(**asked)


def arrays_in(tree: Any) -> Iterator[Stored]:
    """Yield the arrays of a tree, in its order."""
    if isinstance(tree, Stored):
        yield tree
    elif isinstance(tree, Parsed):
        yield from arrays_in([*(tree.parameters or {}).values(), *(tree.fields or {}).values()])
    elif isinstance(tree, list | tuple):
        for part in tree:
            yield from arrays_in(part)


def check_rules(tree: Any) -> None:
    """Raise MismatchError if fields do not agree, in any record of a tree whose arrays have been read."""
    if isinstance(tree, tuple):
        for part in tree:
            check_rules(part)
    if not isinstance(tree, Parsed):
        return
    for part in (*(tree.parameters or {}).values(), *(tree.fields or {}).values()):
        check_rules(part)
    if tree.fields is None:
        return
    values = {name: part.array if isinstance(part, Stored) else part for name, part in tree.fields.items()}
    for name, holds in tree.record.rules.items():
        if not holds(values):
            raise MismatchError(f"{tree.where} breaks a rule: {name}")


def build(tree: Any, parameters: Mapping[str, Any] | None = None) -> Any:
    """Return what a tree stands for, after all checks; ``parameters`` are those that it may refer to."""
    if isinstance(tree, Stored):
        return tree.array
    if isinstance(tree, Parsed):
        return _build_record(tree, parameters)
    if isinstance(tree, tuple):
        return tuple(build(part, parameters) for part in tree)
    if isinstance(tree, dict):
        return {name: build(part, parameters) for name, part in tree.items()}
    return (parameters or {})[tree.name] if isinstance(tree, Parameter) else tree


def _build_record(tree: Parsed, parameters: Mapping[str, Any] | None) -> Any:
    record = tree.record
    if tree.parameters is None:
        return record.make(record.cls, build(tree.fields, parameters))
    own = build(tree.parameters)
    model = record.cls(**own)
    if tree.output is not None:
        vars(model)["_sklearn_output_config"] = {"transform": tree.output}
    _set_requests(model, tree.requests)
    vars(model).update(build(tree.fields or {}, own))
    if record.finish is not None:
        record.finish(model)
    return model
