"""Results: which fields they have, and how they are projected, selected, encoded, spilled and read.

    paths, output_fields   which fields there are          projection, selection   keeping some
    shapes                 where the data of a result is   table_format            fewer tokens
    spill_notice           what is stored and shown        result_pages            reading it again
    blob_links             the same for images and files

Everything here is computation on values; `pegboard.dispatch` applies it to calls.
"""
