/* reached [k, n]: 1 where there is a path. */
void init(Search &s) {
    if (s.thread() == 0) s.reached[s.source] = 1;
}

void visit_vertex(Search &s, u32 u, u32 v) {
    if (!s.reached[v]) s.reached[v] = 1;
}
