"""What becomes of a result: fields, paths, projection, tables, spilled results, links."""
