"""core's functions as SQL functions and as Spark, pandas and Arrow UDFs. This package has no rules: it converts types.

docs/replay_in_sql.md replays the decisions of a night with them.

- `functions`: the catalogue; `functions.allocate_averagely.arrow_udf(...)` is a column, `FUNCTIONS` has all of them
- `function`: what an entry of the catalogue is, and what its three faces (udf, pandas, Arrow) give
- `register`: the catalogue as SQL functions of a session, as `mqreplay sql` has them
- `laws`: laws whose arguments or answers are no Spark types, in a shape that is
- `faces`, `answer`: what runs in Spark's workers; an error on purpose becomes a value, a bug does not
- `values`, `arrow_values`, `pandas_columns`: conversions
"""
