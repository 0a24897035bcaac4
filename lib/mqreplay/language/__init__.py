"""mqreplay's texts in other languages. Tables keep English; a page or a terminal shows its translation."""
