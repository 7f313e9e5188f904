"""A page for those who decide: the answer in a sentence, and below it what it rests on, in one file that needs nothing else."""
