"""Damaged input for every kind of file, command, `--set` and option: what hwsim must survive with an answer or a mistake.

    python -m tests.fuzz.campaign --seconds 600        a campaign: cases by kind, findings by root
    pytest tests/test_fuzz_commands.py                 some cases of every kind, and the seeds that once found something

`corpus` has what is undamaged, `damage` the ways to damage it, `cases` makes a case from a kind and a seed, `play` runs it.
"""
