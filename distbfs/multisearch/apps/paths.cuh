/* The levels are kept by the search itself; deepest: the largest. */
void prior(Search &s) {
    if (s.thread() == 0) s.deepest = s.depth;
}
