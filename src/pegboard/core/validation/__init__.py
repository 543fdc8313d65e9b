"""Arguments against schemas: read forgivingly, checked exactly, refused with what is right."""

from pegboard.core.validation.coerce import as_object, understood
from pegboard.core.validation.validators import (
    Validator,
    Validators,
    check_examples,
    with_read_examples,
)

__all__ = [
    "Validator",
    "Validators",
    "as_object",
    "check_examples",
    "understood",
    "with_read_examples",
]
