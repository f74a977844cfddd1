/* reached: vertices, the source among them; far: the sum of their levels. */
void prior(Search &s) {
    if (s.thread() == 0) s.reached += s.size, s.far += (u64)s.size * s.depth;
}
