"""Real graphs: fetched by name, measured beside other libraries."""
