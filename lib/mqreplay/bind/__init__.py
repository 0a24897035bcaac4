"""The Spark face of core's pure functions. No rule lives here: it converts types and calls the law.

- `functions`: the catalogue; `functions.allocate_averagely.arrow_udf(...)` is a column, `FUNCTIONS` has all
- `function`: what an entry of the catalogue is, and what its three faces (udf, pandas, Arrow) give
- `register`: the catalogue as SQL functions of a session
- `laws`: laws whose arguments or answers are no Spark types, in a shape that is
- `faces`, `answer`: what runs in Spark's workers; an error on purpose becomes a value, a bug does not
- `values`, `arrow_values`, `pandas_columns`: conversions
"""
