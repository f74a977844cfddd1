"""A graph that stays loaded and answers queries.

``operations`` says what can be asked, ``lines`` and ``http`` take requests, ``tickets``
holds them, ``service`` answers them on rank 0, ``ranks`` searches on all ranks.
"""
