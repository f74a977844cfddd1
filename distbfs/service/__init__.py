"""A graph that stays loaded and answers queries.

``operations`` declares each operation once, with its ``fields`` and the models of its
answers; ``checker`` and ``openapi`` follow from that. ``connection`` is a client in
either encoding, ``json_lines`` or ``http``; ``doors`` let clients in. ``request_queue``
holds requests, ``service`` answers them on rank 0 with ``answers``, and ``rank_calls``
runs the searches on all ranks.
"""
