/* count: vertices that are at most `hops` away, the source among them. */
void prior(Search &s) {
    if (s.thread() == 0 && s.depth <= s.hops) s.count += s.size;
}
