"""What an operator must know, one module a family: judged rows in, rows of gold.finding out. Pure, as judge/ is."""
