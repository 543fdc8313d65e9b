"""Arguments against schemas: coerced where the meaning is clear, then checked exactly."""

from pegboard.core.validation.coerce import coerce_arguments, decode_arguments
from pegboard.core.validation.validators import (
    Validator,
    Validators,
    check_examples,
    parse_examples,
)

__all__ = [
    "Validator",
    "Validators",
    "check_examples",
    "coerce_arguments",
    "decode_arguments",
    "parse_examples",
]
