"""Engines layer and frontier: Sevilmis, Sivri, Aydin 2019."""
