"""Mixed membership: each key of a record comes from one of several profiles, in shares of the record's own."""
