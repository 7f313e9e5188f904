"""The explorer: a page that shows a run and moves with the hand; a local server, and the processes that simulate for it."""
