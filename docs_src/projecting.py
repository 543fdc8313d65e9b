"""Projection without a server."""

from pegboard import InvalidField, count_tokens, project, validate_fields

step = {"tool": "grep", "output": "found it " * 50}
record = {"episode": {"id": "ep-1", "steps": [step]}}
schema = {"type": "object", "properties": {"id": {"type": "string"}, "steps": {"type": "array"}}}


def main() -> None:
    selected = project(record, ["id", "steps[].tool"])
    assert selected == {"episode": {"id": "ep-1", "steps": [{"tool": "grep"}]}}
    assert count_tokens(selected) < 0.5 * count_tokens(record)

    validate_fields(["id", "steps"], schema)
    try:
        validate_fields(["ids"], schema)
    except InvalidField as error:
        print(error)  # Invalid field: ids. Nearest: id. Available: id, steps.


if __name__ == "__main__":
    main()
