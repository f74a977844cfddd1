"""Random trials of distbfs, by kind; ``scripts/campaign.py`` runs them.

A kind is a module with ``run(trial)``: it draws from ``trial.rng`` alone, so that a
seed repeats it, and raises ``Wrong`` where an answer breaks a rule.
"""
