"""Methods by the names they have on the command line, and the options that each takes."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import plstream


class Method(StrEnum):
    """Methods that can be fitted."""

    incremental_pls = "incremental-pls"
    incremental_pls_classifier = "incremental-pls-classifier"
    cipls = "cipls"
    ccipca = "ccipca"
    ipls = "ipls"
    olpls = "olpls"
    sgdpls = "sgdpls"
    incremental_lda = "incremental-lda"


_CLASSES = {
    Method.incremental_pls: ("IncrementalPLS", {"scale", "forgetting", "sketch_size", "one_pass"}),
    Method.incremental_pls_classifier: (
        "IncrementalPLSClassifier",
        {"scale", "sketch_size", "one_pass", "classes"},
    ),
    Method.cipls: ("CIPLS", {"classes"}),
    Method.ccipca: ("CCIPCA", set[str]()),
    Method.ipls: ("IPLS", {"classes"}),
    Method.olpls: ("OLPLS", {"classes", "forgetting"}),
    Method.sgdpls: ("SGDPLS", {"classes"}),
    Method.incremental_lda: ("IncrementalLDA", {"classes"}),
}


def require_options(method: Method, **given: Any) -> None:
    """Raise ValueError for an option that is given and that the method does not have."""
    allowed = _CLASSES[method][1]
    for name, value in given.items():
        if value is not None and name not in allowed:
            those = ", ".join(one for one, (_, options) in _CLASSES.items() if name in options)
            raise ValueError(f"--{name.replace('_', '-')} is not for --method {method}: it is for {those}.")


def new_model(method: Method, **parameters: Any) -> Any:
    """Return a model of the method; parameters that are None are as by default."""
    model = getattr(plstream, _CLASSES[method][0])
    return model(**{name: value for name, value in parameters.items() if value is not None})


def reads_again(method: Method) -> bool:
    """Return whether the method can read the data several times."""
    return "one_pass" in _CLASSES[method][1]
