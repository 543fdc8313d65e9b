"""Finding tools by words and by meaning, and deciding how much to trust each.

    tool  -> searchable fields -> postings (bm25) --+
                               -> vectors ----------+-> relevance -> ranked matches
    query -> translation -> terms, vector ----------+

Everything here is computation on values. Models and files are outside; they come in as arrays and
as a function from a query to its vector.
"""

from pegboard.core.search.search_index import Match, ScoreParts, SearchIndex

__all__ = ["Match", "ScoreParts", "SearchIndex"]
