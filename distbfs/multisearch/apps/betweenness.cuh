/* Brandes 2001: sigma counts shortest paths from the source; delta, level by level back,
 * the share of pairs whose paths go through a vertex.  value [n] adds up over sources. */
void init(Search &s) {
    if (s.thread() == 0) s.sigma[s.source] = 1;
}

void visit_vertex(Search &s, u32 u, u32 v) {
    if (s.level[v] == s.depth + 1) atomicAdd(&s.sigma[v], s.sigma[u]);
}

/* The array delta holds (1 + delta) / sigma of the levels that are done: delta of u is
 * sigma[u] times the sum of these over those that come after u. */
void post(Search &s) {
    for (u32 d = s.depth; d > 0; d--)
        s.each_sum(
            d,
            [&](u32, u32 w) { return s.level[w] == d + 1 ? s.delta[w] : 0.0; },
            [&](u32 v, double sum) {
                const double sigma = s.sigma[v], delta = sigma * sum;
                s.delta[v] = (1 + delta) / sigma;
                if (delta != 0) atomicAdd(&s.value[v], delta);
            });
}
