/* The largest level. */
void prior(Search &s) {
    if (s.thread() == 0) s.eccentricity = s.depth, s.reached += s.size;
}
