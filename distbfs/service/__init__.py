"""A graph that stays loaded and answers queries.

``operations`` has the models of requests and answers, ``checker`` checks requests,
``json_lines`` and ``http`` take them, ``request_queue`` holds them, ``service`` answers
them on rank 0, ``rank_calls`` searches on all ranks.
"""
