"""Token costs of a catalog, and the quality of search.

    measurement.measure(board)  -> Measurement: servers, tools, modes, sessions, recorded results
    search_quality.evaluate_rankers(..) -> recall, nDCG and latency of rankers over judged queries
    report                         a measurement as HTML or SVG

Costs are counted by requesting lists and definitions from the real modes.
"""
