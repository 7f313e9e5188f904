"""A self-contained HTML page for decision makers: the answer in one sentence, then its evidence."""
