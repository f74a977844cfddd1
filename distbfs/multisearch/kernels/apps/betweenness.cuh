/* Brandes 2001: sigma counts shortest paths from the source; delta, level by level back,
 * the share of pairs whose paths go through a vertex.  value [n] adds up over sources. */
void init(Search &s) {
    if (s.thread() == 0) s.sigma[s.source] = 1;
}

void visit_vertex(Search &s, u32 u, u32 v) {
    if (s.level[v] == s.depth + 1) atomicAdd(&s.sigma[v], s.sigma[u]);
}

/* share is (1 + delta) / sigma, and delta that of u is sigma[u] times the sum of the
 * shares of those that come after u. */
void post(Search &s) {
    for (u32 d = s.depth; d > 0; d--)
        s.each_sum(
            d,
            [&](u32, u32 w) { return s.level[w] == d + 1 ? s.share[w] : 0.0; },
            [&](u32 v, double sum) {
                const double sigma = s.sigma[v], delta = sigma * sum;
                s.share[v] = (1 + delta) / sigma;
                if (delta != 0) atomicAdd(&s.value[v], delta);
            });
}
