"""core's functions as SQL functions of Spark and DuckDB, and as Spark, pandas and Arrow UDFs.

This package has no rules: it converts types. docs/replay_in_sql.md replays the decisions of a night with them.

- `functions`: the catalogue; `functions.allocate_averagely.arrow_udf(...)` is a column, `FUNCTIONS` has all of them
- `function`: an entry of the catalogue, with its three faces in Spark (udf, pandas, Arrow)
- `register`: the catalogue as SQL functions of a Spark session; `register_duckdb`: of a connection of DuckDB
- `reference`: signature, description and example of a function, as docs/sql.md and DESCRIBE FUNCTION have them
- `laws`: laws whose arguments or answers are no SQL types, in a shape that is
- `values`: one call of a law, and conversions of a row; our own errors become values, bugs do not
- `faces`, `pandas_face`: the code that runs for each batch of Arrow arrays or of pandas Series, and its conversions
- `sql_types`: the types of arguments and answers
"""
